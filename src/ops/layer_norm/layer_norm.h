// Kernels of layer_norm and layer_norm_grad, limited by memory bandwidth: a row is read from memory
// once and stays in the first-level cache, or in registers of a GPU, for the other passes over it.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct LayerNormCpu {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};

struct LayerNormGradCpu {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct LayerNormCuda {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};

// Scratch: sums of dgamma and dbeta over the rows of each block of threads.
struct LayerNormGradCuda {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

}  // namespace thimble
