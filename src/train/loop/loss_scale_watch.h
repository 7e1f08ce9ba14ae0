// LossScaleWatch: follows the loss scale of a run: which updates were skipped, when the scale
// changed, when training must stop.
#pragma once

#include <cstdint>

#include "thimble/base/result.h"
#include "thimble/exec/executor.h"
#include "thimble/grad/update_spec.h"
#include "thimble/train/loop/run_queue.h"

namespace thimble {

// Writes the initial state, if the program has one. Call StoreResidents afterwards.
void InitializeLossScale(Executor& executor, const UpdateSpec& update);

class LossScaleWatch {
 public:
  // Reads the state from the residents, which must have been fetched or set.
  LossScaleWatch(const Executor& executor, const UpdateSpec& update);

  struct Change {
    bool skipped = false;  // the update was skipped, or gradients were dropped from it
    bool any = false;      // skipped, or the scale changed
  };
  // After each step. kFailed if an update was skipped and the scale cannot shrink any further.
  Result<Change> After(int64_t step, const LossScaleState& now);

  bool active() const { return active_; }
  double scale() const { return static_cast<double>(state_.scale); }
  int64_t skipped() const { return static_cast<int64_t>(state_.skipped); }
  // Adds scale and skipped updates to a StepReport or a TrainSummary, if there is a scale.
  template <class Report>
  void AddTo(Report& report) const {
    if (!active_) return;
    report.loss_scale = scale();
    report.skipped_updates = skipped();
  }

 private:
  UpdateSpec update_;
  bool active_ = false;
  LossScaleState state_;
};

}  // namespace thimble
