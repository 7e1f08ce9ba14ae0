// Kernels of the group-norm ops, limited by memory bandwidth: for each sample a pass for the sums
// and one for the elements.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct GroupNormCpu {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct GroupNormApplyCpu {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct GroupNormGradCpu {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct GroupNormGradAddCpu {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct GroupNormCuda {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};

struct GroupNormApplyCuda {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};

struct GroupNormGradCuda {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct GroupNormGradAddCuda {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

}  // namespace thimble
