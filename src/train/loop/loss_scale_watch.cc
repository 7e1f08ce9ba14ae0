#include "thimble/train/loop/loss_scale_watch.h"

#include <fmt/format.h>

#include <cstring>

#include "thimble/grad/training_graph.h"

namespace thimble {
namespace {

bool HasLossScale(const Executor& executor) {
  return executor.program().plans.front().graph.Find(kLossScaleState).valid();
}

}  // namespace

void InitializeLossScale(Executor& executor, const UpdateSpec& update) {
  if (!HasLossScale(executor)) return;
  const LossScaleState state{.scale = static_cast<float>(update.initial_scale())};
  std::memcpy(executor.ResidentBytes(kLossScaleState).data(), &state, sizeof(state));
}

LossScaleWatch::LossScaleWatch(const Executor& executor, const UpdateSpec& update)
    : update_(update), active_(HasLossScale(executor)) {
  if (!active_) return;
  std::memcpy(&state_, executor.ResidentBytes(kLossScaleState).data(), sizeof(state_));
}

Result<LossScaleWatch::Change> LossScaleWatch::After(int64_t step, const LossScaleState& now) {
  if (!active_) return Change{};
  const LossScaleState before = state_;
  state_ = now;
  Change change;
  change.skipped = now.skipped > before.skipped;
  change.any = change.skipped || now.scale != before.scale;
  if (!change.skipped) return change;
  const bool can_shrink = update_.loss_scale.initial > 0 && update_.loss_scale.interval > 0 &&
                          before.scale > static_cast<float>(update_.loss_scale.floor);
  if (can_shrink) return change;
  if (update_.loss_scale.initial == 0) {
    return Failed(fmt::format(
        "a gradient is not finite at step {}: the update was skipped and training stops", step));
  }
  return Failed(fmt::format(
      "a gradient is not finite at step {} and the loss scale, {}, cannot shrink any further: the "
      "update was skipped and training stops",
      step, before.scale));
}

}  // namespace thimble
