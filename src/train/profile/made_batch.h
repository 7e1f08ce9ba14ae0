// MadeBatch: a synthetic batch and numbers as inputs of a training plan, for measuring memory and
// time, which do not depend on the content of batches.
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
  // Makes all inputs of this plan, which trains a full batch, a part of one, or updates after the
  // parts. `executor` runs that program and must outlive this.
  MadeBatch(const TrainingProgram& program, Executor& executor, size_t plan);

  // Enqueues all inputs. Call before each run: the plan may have reused their bytes. If batches are
  // trained in parts, a run with `first_part` starts a new batch.
  void Write(bool first_part = true) const;

 private:
  // An input of the plan and its content, in host memory that the device can access.
  struct MadeInput {
    TensorView view;
    std::unique_ptr<HostMemory> numbers;
  };

  bool HasInput(std::string_view name) const;
  // The batch itself.
  void MakeFields(const TrainingProgram& program);
  // Does nothing if the plan has no such input.
  template <class T>
  void Make(std::string_view name, FunctionRef<T(size_t index)> number);

  Executor& executor_;
  size_t plan_;
  std::vector<MadeInput> inputs_;
  std::unique_ptr<HostMemory> seen_;  // 0 and 1; nullptr if batches are not split
};

// The runs of a training step with a full batch of synthetic images: one, or one for each part and
// one for the update.
class MadeStep {
 public:
  // `executor` runs that program and must outlive this.
  MadeStep(const TrainingProgram& program, Executor& executor);
  // The same with a whole batch of this shape. Requires a program that does not split batches.
  MadeStep(const TrainingProgram& program, Executor& executor, const BatchShape& shape);

  // The plans that a step runs, the main one first.
  size_t num_plans() const { return plans_.size(); }
  size_t plan(size_t index) const { return plans_[index].plan; }
  int64_t runs(size_t index) const { return plans_[index].runs; }

  // Prepares a run of plan(index) and enqueues its inputs.
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

// Fills the prefetch ring, if the arena has one, as if batches had been read ahead.
void FillPrefetchRing(Executor& executor);

}  // namespace thimble
