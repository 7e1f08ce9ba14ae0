#include "thimble/train/options/command_text.h"

#include <fmt/format.h>

#include "thimble/train/options/options.h"

namespace thimble {
namespace {

// Options that are printed even if they have their default value.
bool AlwaysSaid(const std::string& name) { return name == "model" || name == "data"; }
// Options that refer to an earlier run in the folder.
bool NeverSaid(const std::string& name) {
  return name == "resume" || name == "extend" || name == "overwrite";
}

}  // namespace

std::string ShellWord(const std::string& text) {
  // Only these characters are safe without quotes.
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

std::string CommandOf(const TrainConfig& config) {
  const TrainConfig defaults;
  std::string command = "thimble train";
  for (const Option& option : TrainOptions()) {
    const std::string value = option.get(config);
    const bool said = AlwaysSaid(option.name) || value != option.get(defaults);
    if (!said || NeverSaid(option.name)) continue;
    command += fmt::format(" --{}", option.name);
    if (option.kind != OptionKind::kSwitch) command += fmt::format(" {}", ShellWord(value));
  }
  return command;
}

std::string ContinueCommand(TrainConfig config, const std::string& run_folder) {
  config.out = run_folder;
  return CommandOf(config) + " --resume";
}

}  // namespace thimble
