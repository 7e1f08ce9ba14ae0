// The file in which measured times of ops are kept from one command to the next: one for each kind
// of device, in the user's cache folder. It only helps to predict: a file that is missing, damaged
// or from another machine is not an error, there are just no predictions.
#pragma once

#include <string>
#include <string_view>

#include "thimble/base/result.h"
#include "thimble/train/options/config.h"
#include "thimble/train/step_time/op_times.h"

namespace thimble {

struct OpTimesFile {
  std::string machine;  // MachineOf, at the time of measuring
  OpTimes times;
};

// What the times of a configuration's device depend on, apart from the number of threads: version
// of the program, device, processor and SIMD target or precision of products.
std::string MachineOf(const TrainConfig& config);

std::string ToText(const OpTimesFile& file);
// kBadInput, with the line, if it is not such a text.
Result<OpTimesFile> ParseOpTimes(std::string_view text);

// "$XDG_CACHE_HOME/thimble/op-times-cpu.txt" or, without that variable, below "$HOME/.cache".
// kFailed if there is neither.
Result<std::string> OpTimesPath(const TrainConfig& config);

// Replaces the file; creates its folder if missing.
Result<void> SaveOpTimes(const TrainConfig& config, const OpTimes& times);
// Empty if there is no usable file.
OpTimes LoadOpTimes(const TrainConfig& config);

}  // namespace thimble
