// MadeBatch: made-up images, labels and numbers for the inputs of a training plan. For runs that
// measure memory and time: neither depends on what the images show.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "thimble/base/function_ref.h"
#include "thimble/exec/executor.h"
#include "thimble/train/planning/training_program.h"

namespace thimble {

class MadeBatch {
 public:
  // For the inputs that this plan has. `executor` runs that program and must outlive this.
  MadeBatch(const TrainingProgram& program, Executor& executor, size_t plan);

  // Enqueues all inputs, in front of a run: the plan may have reused their bytes. Where a batch is
  // trained in parts, a run with `first_part` begins a new one.
  void Write(bool first_part = true) const;

 private:
  // An input of the plan and the numbers it gets, in memory that the device reads itself.
  struct MadeInput {
    TensorView view;
    std::unique_ptr<HostMemory> numbers;
  };

  bool HasInput(std::string_view name) const;
  // Nothing where the plan has no such input.
  template <class T>
  void Make(std::string_view name, FunctionRef<T(size_t index)> number);

  Executor& executor_;
  size_t plan_;
  std::vector<MadeInput> inputs_;
  std::unique_ptr<HostMemory> seen_;  // 0 and another number; none where there are no parts
};

// The runs of a training step with a full batch, on made-up images: one, or one for each part and
// one for the update.
class MadeStep {
 public:
  // `executor` runs that program and must outlive this.
  MadeStep(const TrainingProgram& program, Executor& executor);

  // The plans that a step runs, the main one first.
  size_t num_plans() const { return plans_.size(); }
  size_t plan(size_t index) const { return plans_[index].plan; }
  int64_t runs(size_t index) const { return plans_[index].runs; }

  // Makes a run of plan(index) ready: prepares it and enqueues its inputs.
  void Prepare(size_t index, bool first_part) const;
  // Calls run(index, first_part) for each run of a step, in order.
  void ForEachRun(FunctionRef<void(size_t index, bool first_part)> run) const;
  // Enqueues a whole step.
  void Run() const;

 private:
  struct PlanRuns {
    size_t plan;
    int64_t runs;
    MadeBatch batch;
  };

  Executor& executor_;
  std::vector<PlanRuns> plans_;
};

// Fills the prefetch ring, if the arena has one, as batches read ahead would.
void FillPrefetchRing(Executor& executor);

}  // namespace thimble
