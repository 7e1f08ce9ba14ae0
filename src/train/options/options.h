// Options: the one table that command line, help, manual page, shell completion, TOML files and
// config.toml are made from.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/program/lever.h"
#include "thimble/train/options/config.h"

namespace thimble {

enum class OptionKind { kText, kInteger, kNumber, kSize, kSwitch };

struct Option {
  std::string name;  // "weight-decay": --weight-decay, and the key in TOML
  OptionKind kind = OptionKind::kText;
  std::string help;
  // A resumed run must have the same value, or its results would not be those of one run.
  bool decides_results = false;
  std::function<Result<void>(TrainConfig&, std::string_view text)>
      set;  // switches take "true"/"false"
  // What `set` accepts. Empty where there is no text: nobody has chosen a value.
  std::function<std::string(const TrainConfig&)> get;
  std::string value = {};       // what it takes, as help shows it (option_values.h)
  std::string_view group = {};  // its heading in help
};

// Headings of groups of options, in the order in which help shows them.
namespace option_group {
inline constexpr const char* kWhat = "What";
inline constexpr const char* kHow = "How";
inline constexpr const char* kMemory = "Memory";
inline constexpr const char* kWhere = "Where and files";
inline constexpr const char* kOutput = "Output";  // of the commands' own options
}  // namespace option_group

const std::vector<Option>& TrainOptions();
// nullptr where there is none.
const Option* FindOption(std::string_view name);

// The value that a configuration has for a lever, and another one for it. Requires a lever of the
// table and one of its values.
std::string ValueOf(const Lever& lever, const TrainConfig& config);
LeverSetting SettingOf(const Lever& lever, const TrainConfig& config);
void Set(const Lever& lever, const std::string& value, TrainConfig& config);

// Whether the values go together (batch at least 1, known schedule, …); the first thing that is
// wrong.
Result<void> CheckConfig(const TrainConfig& config);

// Far more than all options together need.
inline constexpr int64_t kMaxConfigBytes = 1 << 20;

// Reads a TOML file of options into `config`. Unknown keys and wrong types are errors with their
// line.
Result<void> ReadConfigFile(const std::string& path, TrainConfig& config);

// The resolved configuration as TOML that ReadConfigFile takes back.
std::string ToToml(const TrainConfig& config);

// The first option that decides results and differs; empty if there is none.
std::string FirstDifference(const TrainConfig& saved, const TrainConfig& now);

}  // namespace thimble
