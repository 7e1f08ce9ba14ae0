// Calibrate: measures how long ops take on this machine, by training small networks for a few steps
// in the types, sizes of parts and kinds of updates that a budget may choose. Takes seconds.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/graph/op_def.h"
#include "thimble/train/options/config.h"
#include "thimble/train/profile/profile.h"
#include "thimble/train/step_time/op_times.h"

namespace thimble {

// Adds the time of each op of a profiled program. The times of ops are scaled so that their sum is
// the time of a whole step: on a GPU, ops that are timed one by one take longer.
void AddSamples(const Profile& profile, const Program& program, const OpRegistry& ops,
                OpTimes::Samples& samples);

// A DynamicConv network with one layer on each side, of 256 channels: its products are as efficient
// as those of larger ones, and it needs little memory.
inline constexpr const char* kSmallTranslator = "small translator";

// A network to train for a few steps.
struct MeasuredNetwork {
  std::string model;  // kSmallTranslator, or a network for images
  int64_t batch = 0;
  int64_t microbatch = 0;                          // 0: the whole batch
  std::map<std::string, std::string> levers = {};  // like the next, as in TrainConfig
  int64_t scratch_bytes = TrainConfig().scratch_bytes;
};
// Those that call the kernels which a budget chooses among, in several sizes.
std::vector<MeasuredNetwork> NetworksToMeasure(DeviceKind device);

// For the device, threads and precision of products of this configuration; the rest of it is
// ignored.
Result<OpTimes> Calibrate(const TrainConfig& config, const std::vector<MeasuredNetwork>& networks,
                          const OpRegistry& ops);

}  // namespace thimble
