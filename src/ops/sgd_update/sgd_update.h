// Kernels of sgd_update, sgd_update_plain, sgd_gather, sgd_apply and sgd_apply_feedback: one pass,
// limited by memory bandwidth.
#pragma once

#include <cstddef>
#include <span>

#include "thimble/graph/kernel.h"
#include "thimble/ops/update_rounding.h"

namespace thimble {

// Where an op has the inputs that its kernels treat alike. The optional ones come last.
struct SgdInputs {
  size_t arrays = 0;  // inputs [0, arrays) have one shape
  size_t update = 0;  // optional: number of the update
  size_t factor = 0;  // optional: multiplies gradients; 0: the update is skipped
};
inline constexpr SgdInputs kSgdUpdateInputs{.arrays = 3, .update = 4, .factor = 5};
inline constexpr SgdInputs kSgdPlainInputs{.arrays = 2, .update = 3, .factor = 4};
inline constexpr SgdInputs kSgdGatherInputs{.arrays = 3, .update = 4, .factor = 5};
inline constexpr SgdInputs kSgdApplyInputs{.arrays = 2, .update = 3, .factor = 4};

// The factor of the gradient; 1 if the node has none. For calls in host memory.
inline float SgdFactorOf(const KernelCall& call, const SgdInputs& where) {
  return call.inputs.size() > where.factor ? call.In<float>(where.factor)[0] : 1.0F;
}

// Error feedback: what rounding took from a weight (the exact result minus the stored one), times
// this gain, is subtracted from its momentum. The updates that follow then return exactly that
// much, a share each. `least_rate` is that of the attribute feedback_rate; 0: errors are lost.
inline constexpr float kMostFeedback = 1024;  // keeps the momentum within the range of f16
constexpr float FeedbackGain(float momentum, bool nesterov, float least_rate, float learning_rate) {
  if (!(least_rate > 0) || !(momentum > 0)) return 0;
  const float rate = learning_rate > least_rate ? learning_rate : least_rate;
  return (1 - momentum) / (momentum * (nesterov ? momentum : 1.0F) * rate);
}

// RunRange does the same with a range of the numbers of each array: `call` has them as dense lists,
// from `first_number` on, a multiple of kQ8BlockNumbers.
struct SgdUpdateCpu {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;
  static void Run(const KernelCall& call) { RunRange(call, 0); }
  static void RunRange(const KernelCall& call, size_t first_number);
};
struct SgdUpdatePlainCpu {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;
  static void Run(const KernelCall& call) { RunRange(call, 0); }
  static void RunRange(const KernelCall& call, size_t first_number);
};
struct SgdGatherCpu {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;
  static void Run(const KernelCall& call) { RunRange(call, 0); }
  static void RunRange(const KernelCall& call, size_t first_number);
};
struct SgdApplyCpu {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;
  static void Run(const KernelCall& call);
};
struct SgdApplyFeedbackCpu {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;
  static void Run(const KernelCall& call);
};

// All tensors of a network in one launch.
struct SgdUpdateCuda {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;
  static void Run(const KernelCall& call);
  static void RunGroup(std::span<const KernelCall> calls);
};
struct SgdUpdatePlainCuda {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;
  static void Run(const KernelCall& call);
  static void RunGroup(std::span<const KernelCall> calls);
};
struct SgdGatherCuda {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;
  static void Run(const KernelCall& call);
  static void RunGroup(std::span<const KernelCall> calls);
};
struct SgdApplyCuda {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;
  static void Run(const KernelCall& call);
  static void RunGroup(std::span<const KernelCall> calls);
};
struct SgdApplyFeedbackCuda {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;
  static void Run(const KernelCall& call);
  static void RunGroup(std::span<const KernelCall> calls);
};

}  // namespace thimble
