// RunSettings: the options that determine the results of a run. A checkpoint contains them, and a
// resumed run must have the same ones, otherwise its results would differ from those of an
// uninterrupted run.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "thimble/base/result.h"
#include "thimble/train/options/config.h"
#include "thimble/train/options/schedule.h"

namespace thimble {

struct RunSettings {
  // By name of the option. Model files and data are identified by content, so that files may be
  // moved.
  std::map<std::string, std::string> values;
  int64_t steps = 0;  // the length of the run; the only setting that can change (--extend)

  friend bool operator==(const RunSettings&, const RunSettings&) = default;
};

// The number of steps of the run. kBadInput if it exceeds the supported range.
Result<int64_t> StepsOf(const TrainConfig& config, int64_t steps_per_epoch, int64_t runs_per_step);

// `model_text` is the text of the model file, or empty; `data` is TaskData::identity.
RunSettings SettingsOf(const TrainConfig& config, const std::string& model_text,
                       const std::string& data, int64_t steps);

// kBadInput with the first setting that differs. A different length is also rejected, unless it is
// longer and `extend` is set.
Result<void> CheckSameSettings(const RunSettings& saved, const RunSettings& now, bool extend);

// Describes how extending a run from `before` to `after` at step `step` changes the learning rate.
// The spans differ only in num_steps.
std::string DescribeExtension(const Schedule& schedule, double base_rate,
                              const ScheduleSpan& before, const ScheduleSpan& after, int64_t step);

std::string ToJson(const RunSettings& settings);
// kBadInput for anything that ToJson does not produce.
Result<RunSettings> SettingsFromJson(const std::string& text);

}  // namespace thimble
