// MadeBatch: made-up images, labels and numbers for the inputs of a training plan. For runs that
// measure memory and time: neither depends on what the images show.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "thimble/base/function_ref.h"
#include "thimble/exec/executor.h"
#include "thimble/train/training_program.h"

namespace thimble {

class MadeBatch {
 public:
  // For the plan of full batches. `executor` runs that program and must outlive this.
  MadeBatch(const TrainingProgram& program, Executor& executor);

  // Enqueues all inputs, in front of a run: the plan may have reused their bytes.
  void Write() const;

 private:
  // An input of the plan and the numbers it gets, in memory that the device reads itself.
  struct MadeInput {
    TensorView view;
    std::unique_ptr<HostMemory> numbers;
  };

  template <class T>
  void Make(size_t plan, std::string_view name, FunctionRef<T(size_t index)> number);

  Executor& executor_;
  std::vector<MadeInput> inputs_;
};

// Fills the prefetch ring, if the arena has one, as batches read ahead would.
void FillPrefetchRing(Executor& executor);

}  // namespace thimble
