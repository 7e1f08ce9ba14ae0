// Kernels that compute the weight gradient of a convolution and use it at once: a range of it
// exists at a time, in scratch (conv2d/grad_weight_ranges.h), and no array of gradients.
#pragma once

#include <cstddef>

#include "thimble/graph/kernel.h"

namespace thimble {

// Inputs: x, dy, then those of the op that uses the gradient, except the gradient, which is its
// second one. What that op does to a range of its arrays, its kernel does.
struct Conv2dUpdateCpu {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;  // arrays of the second op, with one pattern
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
};
struct Conv2dAccumulateCpu : Conv2dUpdateCpu {
  static void Run(const KernelCall& call);
};
struct Conv2dSgdGatherCpu : Conv2dUpdateCpu {
  static void Run(const KernelCall& call);
};
struct Conv2dSgdUpdateCpu : Conv2dUpdateCpu {
  static void Run(const KernelCall& call);
};
struct Conv2dSgdUpdatePlainCpu : Conv2dUpdateCpu {
  static void Run(const KernelCall& call);
};

// The calls of the two ops are parts of the call of both.
inline constexpr size_t kConv2dInputs = 2;  // x, dy
inline constexpr size_t kUpdateGradientInput =
    1;  // the gradient, among the inputs of the second op

}  // namespace thimble
