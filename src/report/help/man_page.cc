#include "thimble/report/help/man_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <sstream>

namespace thimble {
namespace {

// The sections that apply to every command.
constexpr std::string_view kClosing = R"(.SH SIZES
A size is a whole number of bytes, or a number (decimals are allowed) with a unit, in upper or lower
case, with or without B: k, M, G or T (1000, 1000^2, ...), Ki, Mi, Gi or Ti (1024, 1024^2, ...).
It is rounded down to whole bytes. Examples: 512k, 8MB, 1.5GiB.
.SH FILES
A run folder holds config.toml, plan.json, metrics.jsonl, checkpoint/, weights.safetensors,
best.safetensors, summary.json, report.html and plots/.
.SH ENVIRONMENT
COLUMNS overrides the width of the terminal for tables, help and progress.
NO_COLOR, set to any value, and TERM=dumb turn colours off.
.SH EXIT STATUS
.TP
0
done
.TP
1
failed while running, or results could not be written to standard output
.TP
2
wrong usage or bad input
.TP
3
does not fit the budget
.TP
128+N
stopped by signal N, with a checkpoint saved
)";

// Escapes text of a paragraph, so that no character of it is read as markup.
std::string RoffText(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
  }
  const bool command = escaped.starts_with('.') || escaped.starts_with('\'');
  return command ? "\\&" + escaped : escaped;
}

std::string Entry(const HelpOption& option) {
  std::string text = fmt::format(".TP\n\\fB{}\\fR", RoffText(option.name));
  if (!option.value.empty()) text += fmt::format(" \\fI{}\\fR", RoffText(option.value));
  text += "\n" + RoffText(option.help);
  if (!option.standard.empty()) text += RoffText(fmt::format(" (default: {})", option.standard));
  return text + "\n";
}

std::string Lines(const std::string& notes) {
  std::string text = ".PP\n.nf\n";
  std::istringstream lines(notes);
  for (std::string line; std::getline(lines, line);) text += RoffText(line) + "\n";
  return text + ".fi\n";
}

// Equal for options with the same name, values, help and default.
std::string KeyOf(const HelpOption& option) {
  return fmt::format("{}\n{}\n{}\n{}", option.name, option.value, option.help, option.standard);
}

class CommandSections {
 public:
  std::string Section(const std::string& program, const HelpCommand& command) {
    std::string title = fmt::format("{} {}", program, command.name);
    for (const HelpOption& word : command.words) title += " " + word.name;
    std::string text =
        fmt::format(".SS {} [OPTIONS]\n{}\n", RoffText(title), RoffText(command.what));
    for (const HelpOption& word : command.words) text += Entry(word);
    std::string group;
    std::map<std::string, std::vector<std::string>> elsewhere;  // by command: names of options
    for (const HelpOption& option : command.options) {
      const auto [place, here] = explained_.emplace(KeyOf(option), command.name);
      if (!here) {
        elsewhere[place->second].push_back(RoffText(option.name));
        continue;
      }
      if (option.group != group) text += fmt::format(".PP\n{}:\n", RoffText(option.group));
      group = option.group;
      text += Entry(option);
    }
    for (const auto& [name, options] : elsewhere) {
      text += fmt::format(".PP\nAs for {}: {}\n", name, fmt::join(options, ", "));
    }
    return command.notes.empty() ? text : text + Lines(command.notes);
  }

 private:
  std::map<std::string, std::string> explained_;  // by key of the option: the command
};

}  // namespace

std::string ManPage(const HelpProgram& program) {
  std::string upper = program.name;
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  std::string text = fmt::format(
      ".TH {} 1 \"\" \"{} {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n"
      ".B {}\n\\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.SH OPTIONS\n",
      upper, program.name, RoffText(program.version), program.name, RoffText(program.what),
      program.name);
  for (const HelpOption& option : program.options) text += Entry(option);
  text += ".SH COMMANDS\n";
  CommandSections sections;
  for (const HelpCommand& command : program.commands) {
    text += sections.Section(program.name, command);
  }
  return text + std::string(kClosing);
}

}  // namespace thimble
