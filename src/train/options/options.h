// Options: the table from which command line, help, manual page, shell completion, TOML files and
// config.toml are made.
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
  // A resumed run must have the same value, otherwise its results would differ from those of an
  // uninterrupted run.
  bool decides_results = false;
  std::function<Result<void>(TrainConfig&, std::string_view text)>
      set;  // switches take "true"/"false"
  // The value as text that `set` accepts; empty: no value chosen.
  std::function<std::string(const TrainConfig&)> get;
  std::string value = {};       // its values as help shows them (option_values.h)
  std::string_view group = {};  // its heading in help
};

// Headings of groups of options, in the order in which help shows them.
namespace option_group {
inline constexpr const char* kWhat = "What";
inline constexpr const char* kHow = "How";
inline constexpr const char* kMemory = "Memory";
inline constexpr const char* kWhere = "Where and files";
inline constexpr const char* kOutput = "Output";  // options of single commands
}  // namespace option_group

const std::vector<Option>& TrainOptions();
// nullptr if there is none.
const Option* FindOption(std::string_view name);

// Get and set the value of a lever in a configuration. Require a lever of the table and a valid
// value.
std::string ValueOf(const Lever& lever, const TrainConfig& config);
LeverSetting SettingOf(const Lever& lever, const TrainConfig& config);
void Set(const Lever& lever, const std::string& value, TrainConfig& config);

// Checks values and combinations (batch at least 1, known schedule, …); kBadInput with the first
// problem.
Result<void> CheckConfig(const TrainConfig& config);

// Far more than all options need.
inline constexpr int64_t kMaxConfigBytes = 1 << 20;

// Reads a TOML file of options into `config`. kBadInput, with the line, for unknown keys and wrong
// types.
Result<void> ReadConfigFile(const std::string& path, TrainConfig& config);

// The resolved configuration as TOML that ReadConfigFile accepts.
std::string ToToml(const TrainConfig& config);

// Describes the first option that decides results and differs; empty if there is none.
std::string FirstDifference(const TrainConfig& saved, const TrainConfig& now);

}  // namespace thimble
