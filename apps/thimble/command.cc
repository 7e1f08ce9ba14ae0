#include "apps/thimble/command.h"

#include <fmt/format.h>

#include <algorithm>

#include "thimble/base/quote_name.h"
#include "thimble/train/options.h"

namespace thimble {

void ConfigFlags::AddTo(CLI::App& command, const std::vector<std::string>& names) {
  command.add_option("--config", config_file_, "TOML file with any of these options");
  for (const Option& option : TrainOptions()) {
    const bool wanted =
        names.empty() || std::find(names.begin(), names.end(), option.name) != names.end();
    if (!wanted) continue;
    const std::string flag = "--" + option.name;
    if (option.kind == OptionKind::kSwitch) {
      command.add_flag_callback(
          flag, [this, name = option.name] { given_.emplace_back(name, "true"); }, option.help);
    } else {
      command.add_option_function<std::string>(
          flag,
          [this, name = option.name](const std::string& text) { given_.emplace_back(name, text); },
          option.help);
    }
  }
}

Result<TrainConfig> ConfigFlags::Resolve(TrainConfig defaults) const {
  TrainConfig config = std::move(defaults);
  if (!config_file_.empty()) THIMBLE_TRY(ReadConfigFile(config_file_, config));
  for (const auto& [name, text] : given_) THIMBLE_TRY(FindOption(name)->set(config, text));
  THIMBLE_TRY(CheckConfig(config));
  return config;
}

int Report(const Error& error) {
  // Names of files and options come from outside: whatever they hold, the message is one line.
  fmt::print(stderr, "thimble: {}\n", OneLine(error.message));
  return ExitCode(error);
}

}  // namespace thimble
