// Kernels of accumulate: one pass, limited by memory bandwidth.
#pragma once

#include <span>

#include "thimble/graph/kernel.h"

namespace thimble {

struct AccumulateCpu {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;
  static void Run(const KernelCall& call);
};

// The tensors of consecutive steps in one launch.
struct AccumulateCuda {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;
  static void Run(const KernelCall& call);
  static void RunGroup(std::span<const KernelCall> calls);
};

}  // namespace thimble
