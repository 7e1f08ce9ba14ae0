#include "apps/thimble/command.h"

#include <algorithm>

#include "thimble/base/quote_name.h"
#include "thimble/train/options/options.h"
#include "thimble/train/options/usual_settings.h"

namespace thimble {

void ConfigFlags::AddTo(CLI::App& command, const std::vector<std::string>& names) {
  const TrainConfig defaults;
  for (const Option& option : TrainOptions()) {
    const bool wanted =
        names.empty() || std::find(names.begin(), names.end(), option.name) != names.end();
    if (!wanted) continue;
    const auto take = [this, name = option.name](const std::string& text) {
      given_.emplace_back(name, text);
    };
    const bool is_switch = option.kind == OptionKind::kSwitch;
    CLI::Option* added =
        is_switch ? command.add_flag_callback(
                        "--" + option.name, [take] { take("true"); }, option.help)
                  : command.add_option_function<std::string>("--" + option.name, take, option.help)
                        ->type_name(option.value)
                        ->default_str(option.get(defaults));
    added->group(std::string(option.group));
  }
  command.add_option("--config", config_file_, "TOML file with any of these options")
      ->type_name("FILE")
      ->group(option_group::kWhere);
}

Result<void> ConfigFlags::Apply(TrainConfig& config) const {
  if (!config_file_.empty()) THIMBLE_TRY(ReadConfigFile(config_file_, config));
  for (const auto& [name, text] : given_) THIMBLE_TRY(FindOption(name)->set(config, text));
  return {};
}

Result<TrainConfig> ConfigFlags::Resolve() const {
  TrainConfig given;
  THIMBLE_TRY(Apply(given));
  return Resolve(UsualSettings(given));
}

Result<TrainConfig> ConfigFlags::Resolve(TrainConfig defaults) const {
  TrainConfig config = std::move(defaults);
  THIMBLE_TRY(Apply(config));
  THIMBLE_TRY(CheckConfig(config));
  return config;
}

bool ConfigFlags::HasFileOr(const std::vector<std::string>& names) const {
  return !config_file_.empty() || std::any_of(given_.begin(), given_.end(), [&](const auto& given) {
    return std::find(names.begin(), names.end(), given.first) != names.end();
  });
}

int Report(const Error& error) {
  // Names of files and options may contain any bytes; the message must still be one line.
  WriteMessage(fmt::format("thimble: {}\n", OneLine(error.message)));
  return ExitCode(error);
}

}  // namespace thimble
