#include "thimble/train/command_text.h"

#include <fmt/format.h>

#include "thimble/train/options.h"

namespace thimble {
namespace {

// A word of a shell's command line: in quotes where it has anything but these.
std::string ShellWord(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

}  // namespace

std::string CommandOf(const TrainConfig& config) {
  const TrainConfig defaults;
  std::string command = "thimble train";
  for (const Option& option : TrainOptions()) {
    const std::string value = option.get(config);
    if (value == option.get(defaults) || option.name == "resume") continue;
    command += fmt::format(" --{}", option.name);
    if (option.kind != OptionKind::kSwitch) command += fmt::format(" {}", ShellWord(value));
  }
  return command;
}

}  // namespace thimble
