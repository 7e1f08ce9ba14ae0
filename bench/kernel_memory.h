// KernelMemory: one block with the inputs, outputs and scratch of a kernel, as in an arena.
#pragma once

#include <span>
#include <vector>

#include "bench/kernel_cases.h"
#include "thimble/base/result.h"
#include "thimble/device/cpu/arena.h"
#include "thimble/device/cpu/thread_pool.h"

namespace thimble {

class KernelMemory {
 public:
  // Tensors of rank 2 and more get numbers in [-1, 1); vectors (scales, variances, the learning
  // rate) are 1, so that the numbers of a kernel that works in place stay ordinary over many runs.
  // Labels are 0, a class that always exists.
  static Result<KernelMemory> Create(const KernelCase& the_case, const KernelLimits& limits);

  // `the_case` must be the one passed to Create.
  void Run(const KernelCase& the_case, ThreadPool& pool) const;

  std::span<const TensorView> inputs() const { return inputs_; }
  std::span<const TensorView> outputs() const { return outputs_; }
  std::span<const std::byte> scratch() const { return scratch_; }

 private:
  explicit KernelMemory(Arena arena) : arena_(std::move(arena)) {}
  std::span<std::byte> Take(size_t size_bytes);

  Arena arena_;
  size_t used_bytes_ = 0;
  std::vector<TensorView> inputs_;
  std::vector<TensorView> outputs_;
  std::span<std::byte> scratch_;
};

}  // namespace thimble
