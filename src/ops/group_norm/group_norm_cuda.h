// The group-norm ops on a GPU.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct GroupNormCuda {
  static void Run(const KernelCall& call);
};

struct GroupNormApplyCuda {
  static void Run(const KernelCall& call);
};

struct GroupNormGradCuda {
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct GroupNormGradAddCuda {
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

}  // namespace thimble
