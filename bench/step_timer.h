// StepTimer: runs training steps on made images and measures how long they and their ops take.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/machine_peaks.h"
#include "thimble/base/result.h"
#include "thimble/exec/executor.h"
#include "thimble/train/config.h"
#include "thimble/train/training_program.h"

namespace thimble {

class StepTimer {
 public:
  // Plans, maps the arena and warms up.
  static Result<StepTimer> Create(const TrainConfig& config);

  // Steps for about `seconds`, at least kMinSteps; exactly config.steps where that is above 0.
  void Measure(double seconds);
  static constexpr size_t kMinSteps = 3;  // of fewer there is no median

  // What Measure found: model, settings, steps, milliseconds, images per second; one line of JSON.
  std::string ToJson() const;
  // Time per op of the measured steps, longest first, beside what the machine would allow.
  std::string OpTable(const MachinePeaks& peaks) const;

  ThreadPool& pool() { return executor_->pool(); }

 private:
  StepTimer(const TrainConfig& config, TrainingProgram program, std::unique_ptr<Executor> executor);
  const Plan& plan() const { return program_.main_plan(); }
  void FillInputs(size_t plan);
  double RunStep();

  TrainConfig config_;
  TrainingProgram program_;
  std::unique_ptr<Executor> executor_;
  std::vector<uint8_t> images_;
  std::vector<int32_t> labels_;
  std::vector<int32_t> samples_;
  std::vector<double> step_seconds_;  // sorted
  std::vector<double> op_seconds_;    // by step of the plan; all measured steps together
};

}  // namespace thimble
