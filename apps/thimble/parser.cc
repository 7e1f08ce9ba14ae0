#include "apps/thimble/parser.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "thimble/base/nearest_name.h"
#include "thimble/base/version.h"
#include "thimble/report/help/help_text.h"
#include "thimble/train/options/option_values.h"
#include "thimble/train/options/options.h"

namespace thimble {
namespace {

// What is wrong with the value; empty if nothing is.
std::string Slip(const std::string& value, const std::vector<std::string>& only) {
  if (value.empty()) return "expected a value, got an empty one";
  if (value.starts_with("--")) {
    return fmt::format("expected a value, got what looks like an option: {}", value);
  }
  if (only.empty() || std::find(only.begin(), only.end(), value) != only.end()) return {};
  return fmt::format("expected {}, got '{}'", AnyOf(only), value);
}

// The allowed values of an option that only this command has. Values of options in the table are
// checked with the whole configuration.
std::vector<std::string> OwnValues(const CLI::Option& option) {
  const bool of_table =
      !option.get_lnames().empty() && FindOption(option.get_lnames().front()) != nullptr;
  return of_table ? std::vector<std::string>() : OnlyValues(option.get_type_name());
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const HelpCommand& command : Describe(app).commands) names.push_back(command.name);
  return names;
}

std::vector<std::string> OptionNames(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  return names;
}

// The message for an argument that neither the program nor its command accepts.
std::string UnknownWord(const CLI::App& app, const CLI::App& command, const std::string& word) {
  if (word.starts_with("-")) {
    const std::string name = word.substr(0, word.find('='));
    const std::string bare = name.substr(std::min(name.find_first_not_of('-'), name.size()));
    return fmt::format("unknown option {}{}", name, DidYouMean(bare, OptionNames(command), "--"));
  }
  if (&command != &app)
    return fmt::format("{}: unexpected argument '{}'", command.get_name(), word);
  return fmt::format("unknown command '{}'{}", word, DidYouMean(word, CommandNames(app)));
}

// Rewords CLI11's "--batch: 1 required N missing", "--batch: At Most 1 required but received 2" and
// "--json was given a disallowed flag override".
std::string WrongCount(const std::string& message) {
  const std::string word = message.substr(0, message.find_first_of(": "));
  const std::string name = word.starts_with("-") ? word : "--" + word;
  if (message.find("missing") != std::string::npos) return name + ": expected a value";
  const bool override = message.find("override") != std::string::npos;
  return name + (override ? ": takes no value" : ": given more than once");
}

std::string NameOf(const CLI::Option& option) {
  if (option.get_positional()) {
    std::string name = option.get_name();
    for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    if (option.get_expected_max() > 1) name += "...";
    return option.get_required() ? name : "[" + name + "]";
  }
  std::string name = option.get_snames().empty() ? "" : "-" + option.get_snames().front() + ", ";
  return name + "--" + option.get_lnames().front();
}

// An option without a group is put into `group`.
HelpOption DescribeOption(const CLI::Option& option, const char* group) {
  const bool grouped = option.get_group() != "Options";
  return {.name = NameOf(option),
          .value = option.get_expected_max() == 0 ? "" : option.get_type_name(),
          .help = option.get_description(),
          .standard = option.get_default_str(),
          .group = grouped ? option.get_group() : group};
}

// By the order of their headings.
void Sort(std::vector<HelpOption>& options) {
  const auto rank = [](const HelpOption& option) {
    constexpr std::array kOrder = {option_group::kWhat, option_group::kHow, option_group::kMemory,
                                   option_group::kWhere, option_group::kOutput};
    return std::find(kOrder.begin(), kOrder.end(), option.group) - kOrder.begin();
  };
  std::stable_sort(options.begin(), options.end(),
                   [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
}

HelpCommand DescribeCommand(const CLI::App& command) {
  HelpCommand help{.name = command.get_name(), .what = command.get_description()};
  for (const CLI::Option* option : command.get_options()) {
    if (option == command.get_help_ptr()) continue;
    auto& list = option->get_positional() ? help.words : help.options;
    list.push_back(DescribeOption(*option, option_group::kOutput));
  }
  Sort(help.options);
  help.options.push_back(DescribeOption(*command.get_help_ptr(), option_group::kOutput));
  help.notes = command.get_footer();
  return help;
}

}  // namespace

void RefuseSlips(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    for (CLI::Option* option : command->get_options()) {
      if (option->get_expected_max() == 0) {
        option->disable_flag_override();
        continue;
      }
      option->check(
          [only = OwnValues(*option)](const std::string& value) { return Slip(value, only); });
    }
  }
}

Result<void> CheckWords(int num_words, const char* const* words) {
  for (int i = 1; i < num_words; ++i) {
    const std::string_view word = words[i];
    if (word == "--") break;
    if (word.starts_with("--") && word.find('=') == word.size() - 1) {
      return BadInput(fmt::format("{}: expected a value after the =", word));
    }
  }
  return {};
}

Error ErrorOf(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const CLI::App& command = chosen.empty() ? app : *chosen.front();
  const std::vector<std::string> words = command.remaining();
  std::string message = error.what();
  if (!words.empty() && error.get_name() != "ValidationError") {
    message = UnknownWord(app, command, words.front());
  } else if (chosen.empty()) {
    message = fmt::format("expected a command: {}", AnyOf(CommandNames(app)));
  } else if (error.get_name() == "RequiredError") {
    message = fmt::format("{}: expected {}", command.get_name(),
                          DescribeCommand(command).words.front().name);
  } else if (error.get_name() == "ArgumentMismatch") {
    message = WrongCount(message);
  }
  const std::string where = chosen.empty() ? "thimble" : "thimble " + command.get_name();
  return BadInput(fmt::format("{} (see {} --help)", message, where));
}

HelpProgram Describe(const CLI::App& app) {
  HelpProgram program{
      .name = app.get_name(), .what = app.get_description(), .version = std::string(Version())};
  for (const CLI::Option* option : app.get_options()) {
    program.options.push_back(DescribeOption(*option, "Options"));
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) program.commands.push_back(DescribeCommand(*command));
  }
  return program;
}

std::string HelpFor(const CLI::App& app, size_t width) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  if (chosen.empty()) return HelpText(Describe(app), width);
  return HelpText(app.get_name(), DescribeCommand(*chosen.front()), width);
}

}  // namespace thimble
