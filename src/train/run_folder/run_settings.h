// RunSettings: what decides the results of a run, in the words of its options. A checkpoint keeps
// them, and a run that goes on must agree, or its end would not be that of one run.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "thimble/base/result.h"
#include "thimble/model/image_classifier.h"
#include "thimble/train/options/config.h"
#include "thimble/train/options/schedule.h"

namespace thimble {

struct RunSettings {
  // By the option's name. A model file counts by its content and data by what is in its files, so
  // that both may move.
  std::map<std::string, std::string> values;
  int64_t steps = 0;  // the length of the run; the one thing that may be changed, by --extend

  friend bool operator==(const RunSettings&, const RunSettings&) = default;
};

// How many steps the configuration asks for. kBadInput where they are more than can be counted.
Result<int64_t> StepsOf(const TrainConfig& config, int64_t steps_per_epoch, int64_t runs_per_step);

// `data` is ImageData::identity.
RunSettings SettingsOf(const TrainConfig& config, const ImageClassifier& model,
                       const std::string& data, int64_t steps);

// kBadInput with the first setting that differs. A run of another length is refused too, unless it
// is longer and `extend` says that it may be.
Result<void> CheckSameSettings(const RunSettings& saved, const RunSettings& now, bool extend);

// What it means that a run of `before` becomes one of `after`, from step `step` on, for the
// learning rate. The spans differ in num_steps alone.
std::string DescribeExtension(const Schedule& schedule, double base_rate,
                              const ScheduleSpan& before, const ScheduleSpan& after, int64_t step);

std::string ToJson(const RunSettings& settings);
// kBadInput for anything that ToJson does not write.
Result<RunSettings> SettingsFromJson(const std::string& text);

}  // namespace thimble
