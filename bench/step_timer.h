// StepTimer: runs training steps on made-up batches and measures the time of steps and ops.
//
// An asynchronous device gets groups of steps, so that it never waits for the host, and a group is
// timed as a whole, as in training. The time of each op is measured in additional steps, with
// timestamps between the ops. On the CPU every step gives both.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/machine_peaks.h"
#include "bench/train_flags.h"
#include "thimble/base/result.h"
#include "thimble/exec/executor.h"
#include "thimble/train/options/config.h"
#include "thimble/train/planning/training_program.h"
#include "thimble/train/profile/made_batch.h"

namespace thimble {

class StepTimer {
 public:
  // Plans, maps the arena and warms up.
  static Result<StepTimer> Create(const TrainConfig& config,
                                  BenchBatches batches = BenchBatches::kFull);

  // Runs steps for about `seconds`, at least kMinGroups groups; exactly config.steps if that is
  // above 0.
  void Measure(double seconds);
  static constexpr size_t kMinGroups = 3;  // fewer give no useful median
  // Times the ops for OpTable, if Measure has not.
  void MeasureOps();

  // The results of Measure: model, settings, steps, milliseconds, images or tokens per second;
  // one line of JSON.
  std::string ToJson() const;
  // Time per op, longest first, and the machine's limits. Requires MeasureOps.
  std::string OpTable(const MachinePeaks& peaks) const;

  // Time of a step for each shape of batches that was planned, and of all shapes in turn, as in
  // training. kBadInput if batches are split.
  Result<std::string> ShapeTable();

  // The peaks of the device that the steps run on.
  Result<MachinePeaks> MeasurePeaks();

 private:
  StepTimer(const TrainConfig& config, TrainingProgram program, std::unique_ptr<Executor> executor);
  bool on_gpu() const { return executor_->device().kind() == DeviceKind::kCuda; }
  size_t steps_per_group() const;
  void Enqueue(size_t steps);
  void ForgetOps();
  // Both return the seconds taken.
  double RunGroup(size_t steps);
  // Seconds of so many rounds of these steps, one after the other.
  double RunInTurn(std::span<const MadeStep> steps, size_t rounds);
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
