#include "thimble/train/loop/run_target.h"

#include <fmt/format.h>

#include <optional>

#include "thimble/device/cpu/simd_target.h"
#include "thimble/train/run_folder/checkpoint.h"
#include "thimble/train/run_folder/run_folder.h"

namespace thimble {

std::string RunTarget(const TrainConfig& config) {
  if (DeviceOf(config) == DeviceKind::kCpu) return ActiveSimdTarget();
  return fmt::format("{}-{}", config.device, ResolvedMath(config));
}

Result<std::string> ChooseTarget(const TrainConfig& config) {
  THIMBLE_TRY(PinSimdTarget(config.simd));
  if (!config.resume || config.out.empty()) return std::string();
  THIMBLE_ASSIGN_OR_RETURN(const std::optional<CheckpointInfo> checkpoint,
                           ReadCheckpointInfo(CheckpointFolder(config.out)));
  if (!checkpoint || checkpoint->simd_target == RunTarget(config)) return std::string();
  const bool may_choose = DeviceOf(config) == DeviceKind::kCpu && config.simd == "auto";
  if (may_choose && PinSimdTarget(checkpoint->simd_target).ok()) return std::string();
  return fmt::format("the checkpoint was made with {}: continuing with {}, not bit for bit",
                     checkpoint->simd_target, RunTarget(config));
}

}  // namespace thimble
