// CPU kernels of softmax_cross_entropy and its gradient: rows in parallel, classes in vectors.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct SoftmaxCrossEntropyCpu {
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct SoftmaxCrossEntropyGradCpu {
  static void Run(const KernelCall& call);
};

}  // namespace thimble
