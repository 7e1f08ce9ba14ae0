#include "thimble/report/help/help_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace thimble {
namespace {

constexpr size_t kHelpWidth = 80;
constexpr size_t kNarrowest = 40;  // narrower lines are unreadable
constexpr size_t kWidest = 100;    // longer lines are hard to read
constexpr size_t kIndent = 2;
constexpr size_t kHelpColumn = 26;  // where explanations begin

size_t LineWidth(size_t width) {
  return std::clamp(width == 0 ? kHelpWidth : width, kNarrowest, kWidest);
}

std::vector<std::string> WordsOf(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

// Wraps words into lines that start at `column`, where the cursor already is.
std::string Wrapped(const std::vector<std::string>& words, size_t column, size_t width) {
  std::string wrapped;
  size_t used = column;
  for (const std::string& word : words) {
    const bool first = used == column;
    if (!first && used + 1 + word.size() > width) {
      wrapped += "\n" + std::string(column, ' ');
      used = column;
    } else if (!first) {
      wrapped += ' ';
      ++used;
    }
    wrapped += word;
    used += word.size();
  }
  return wrapped + "\n";
}

// "  name      explanation"; after a long name the explanation starts on a new line.
std::string Entry(const std::string& name, const std::vector<std::string>& help, size_t width) {
  std::string text = std::string(kIndent, ' ') + name;
  if (text.size() + 2 > kHelpColumn) {
    text += "\n" + std::string(kHelpColumn, ' ');
  } else {
    text.resize(kHelpColumn, ' ');
  }
  return text + Wrapped(help, kHelpColumn, width);
}

std::string Entry(const HelpOption& option, size_t width) {
  std::vector<std::string> help = WordsOf(option.help);
  if (!option.standard.empty()) help.push_back(fmt::format("(default: {})", option.standard));
  return Entry(option.value.empty() ? option.name : option.name + " " + option.value, help, width);
}

std::string Entries(const std::vector<HelpOption>& options, size_t width) {
  std::string text;
  std::string group;
  for (const HelpOption& option : options) {
    if (option.group != group) text += fmt::format("\n{}:\n", option.group);
    group = option.group;
    text += Entry(option, width);
  }
  return text;
}

}  // namespace

std::string HelpText(const HelpProgram& program, size_t width) {
  width = LineWidth(width);
  std::string text = Wrapped(WordsOf(program.what), 0, width);
  text += fmt::format("\nUsage: {} COMMAND [OPTIONS]\n\nCommands:\n", program.name);
  for (const HelpCommand& command : program.commands)
    text += Entry(command.name, WordsOf(command.what), width);
  text += Entries(program.options, width);
  return text + fmt::format("\n{} COMMAND --help lists the options of a command.\n", program.name);
}

std::string HelpText(const std::string& program_name, const HelpCommand& command, size_t width) {
  width = LineWidth(width);
  std::string usage = fmt::format("Usage: {} {}", program_name, command.name);
  for (const HelpOption& word : command.words) usage += " " + word.name;
  std::string text =
      Wrapped(WordsOf(command.what), 0, width) + fmt::format("\n{} [OPTIONS]\n", usage);
  if (!command.words.empty()) text += "\n";
  for (const HelpOption& word : command.words) text += Entry(word.name, WordsOf(word.help), width);
  text += Entries(command.options, width);
  return command.notes.empty() ? text : text + "\n" + command.notes;
}

}  // namespace thimble
