// StepQueue: training steps in flight. A step is one run or, if the batch is trained in parts, one
// run for each part and one for the update, without waiting between them.
//
//   StepQueue steps(program, batches, *executor, config.prefetch);
//   THIMBLE_TRY(steps.Start(first_step, end_step));
//   while (…) {
//     while (!steps.full()) THIMBLE_TRY(steps.Launch(learning_rate));
//     const FinishedRun step = steps.Collect();   // the oldest
//   }
#pragma once

#include <cstdint>

#include "thimble/base/result.h"
#include "thimble/data/batch_parts.h"
#include "thimble/exec/executor.h"
#include "thimble/train/loop/batch_feed.h"
#include "thimble/train/loop/run_queue.h"
#include "thimble/train/planning/training_program.h"

namespace thimble {

class StepQueue {
 public:
  // Batches are read ahead into `num_slots` slots. All but the last argument must outlive this.
  StepQueue(const TrainingProgram& program, const TrainingSource& batches, Executor& executor,
            int64_t num_slots);

  // Prepares to launch the steps [first_step, end_step). kFailed if the thread that reads ahead
  // cannot be started.
  Result<void> Start(int64_t first_step, int64_t end_step);
  // Stops reading ahead: no other thread writes to the arena any more. Call after the last Launch.
  void Stop() { feed_.Stop(); }

  // Steps launched and not collected.
  int64_t size() const { return launched_ - collected_; }
  bool empty() const { return size() == 0; }
  bool full() const { return runs_.size() + runs_per_step_ > runs_.max_runs(); }

  // Enqueues the next step. Requires that the queue is not full.
  Result<void> Launch(double learning_rate);
  // Whether the last Launch took longer than later ones: plans ran for the first time or were
  // recorded by the device.
  bool last_launch_was_slower() const { return slower_; }
  // Waits for the oldest step. Returns the mean loss of what it counts (TrainingSource::CountAt)
  // and the number of correct answers.
  FinishedRun Collect();

 private:
  Result<void> LaunchPart(int64_t part, double loss_weight, double learning_rate);
  void LaunchUpdate(const BatchShape& batch, double learning_rate);
  // What the loss of a part counts for in the step's mean: `count` is the step's.
  double LossWeight(const BatchPart& part, int64_t count) const;
  // Writes the inputs of an update, those that the plan has.
  void WriteUpdateNumbers(const PlanPorts& ports, double learning_rate);
  // Writes the inputs of random draws (augmentation, dropout).
  void WriteDraws(const PlanPorts& ports, int64_t part, int64_t epoch);

  const TrainingProgram& program_;
  const TrainingSource& batches_;
  BatchParts parts_;
  BatchFeed feed_;
  RunQueue runs_;
  size_t runs_per_step_;
  bool slower_ = false;
  int64_t launched_ = 0;  // the next step
  int64_t collected_ = 0;
};

}  // namespace thimble
