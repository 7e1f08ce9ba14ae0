// StepTimer: runs training steps on made images and measures how long they and their ops take.
//
// A device that works by itself is given groups of steps, so that it never waits for the host, and
// a group is timed as a whole: the steps are those of training. How long each op takes is found out
// in further steps, with times taken between the ops. On the CPU every step tells both.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/machine_peaks.h"
#include "thimble/base/result.h"
#include "thimble/exec/executor.h"
#include "thimble/train/options/config.h"
#include "thimble/train/planning/training_program.h"
#include "thimble/train/profile/made_batch.h"

namespace thimble {

class StepTimer {
 public:
  // Plans, maps the arena and warms up.
  static Result<StepTimer> Create(const TrainConfig& config);

  // Steps for about `seconds`, at least kMinGroups groups; exactly config.steps where that is above
  // 0.
  void Measure(double seconds);
  static constexpr size_t kMinGroups = 3;  // of fewer there is no median
  // Times the ops for OpTable, if Measure has not.
  void MeasureOps();

  // What Measure found: model, settings, steps, milliseconds, images per second; one line of JSON.
  std::string ToJson() const;
  // Time per op, longest first, beside what the machine would allow. Requires MeasureOps.
  std::string OpTable(const MachinePeaks& peaks) const;

  // Of what the steps run on.
  Result<MachinePeaks> MeasurePeaks();

 private:
  StepTimer(const TrainConfig& config, TrainingProgram program, std::unique_ptr<Executor> executor);
  bool on_gpu() const { return executor_->device().kind() == DeviceKind::kCuda; }
  size_t steps_per_group() const;
  void Enqueue(size_t steps);
  void ForgetOps();
  // Both return how long it took.
  double RunGroup(size_t steps);
  double RunTimedStep();
  std::string Limits(const MachinePeaks& peaks) const;

  TrainConfig config_;
  TrainingProgram program_;
  std::unique_ptr<Executor> executor_;
  MadeStep step_;
  size_t num_steps_ = 0;
  std::vector<double> step_seconds_;  // by group, sorted
  size_t num_op_steps_ = 0;
  // By plan of the step and step of that plan; all runs of num_op_steps_ together.
  std::vector<std::vector<double>> op_seconds_;
};

}  // namespace thimble
