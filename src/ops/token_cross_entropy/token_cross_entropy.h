// Kernels of token_cross_entropy and its gradient: matrix products (device/cpu/gemm) over slices of
// the vocabulary, a block of tokens at a time. Exponentials take a few percent of the time.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct TokenCrossEntropyCpu {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct TokenCrossEntropyGradCpu {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

}  // namespace thimble
