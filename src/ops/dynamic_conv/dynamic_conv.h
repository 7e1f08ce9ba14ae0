// Kernels of dynamic_conv and its gradient. From about eight taps on they are limited by
// arithmetic, with fewer by memory. A task is one head of one sentence: its channels and weights
// fit a cache, and no other task touches them, so that outputs may overwrite inputs.
#pragma once

#include "thimble/device/cuda/math.h"
#include "thimble/graph/kernel.h"

namespace thimble {

struct DynamicConvCpu {
  static constexpr bool kTakesShortNumbers = true;
  // For each thread the channels of a head of a sentence and its weights.
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct DynamicConvGradCpu {
  static constexpr bool kTakesShortNumbers = true;
  // For each thread twice as much.
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

// On a GPU. Declines what does not fit shared memory or a grid.
struct DynamicConvCuda {
  static constexpr bool kTakesShortNumbers = true;
  static std::string_view Declines(const OpCall& call);
  static void Run(const KernelCall& call);
};

// Scratch: the weights of all taps, unless a block can have a whole sentence. Short: all numbers
// are stored in the same type of 16 bits; the products of dy and x are computed on tensor cores.
struct DynamicConvGradShortCuda {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr double kRounding = kShortRounding;
  static std::string_view Declines(const OpCall& call);
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};
struct DynamicConvGradCuda {
  static constexpr bool kTakesShortNumbers = true;
  static std::string_view Declines(const OpCall& call);
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

}  // namespace thimble
