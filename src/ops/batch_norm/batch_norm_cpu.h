// CPU kernels of batch_norm and its gradients: a pass for the sums, a pass for the elements.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct BatchNormCpu {
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct BatchNormGradCpu {
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct BatchNormGradAddCpu {
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

}  // namespace thimble
