// Kernels of softmax_cross_entropy and its gradient, limited by their exponentials: rows in
// parallel, the classes of a row in the lanes of a vector or a warp.
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

struct SoftmaxCrossEntropyCuda {
  static void Run(const KernelCall& call);
};

struct SoftmaxCrossEntropyGradCuda {
  static void Run(const KernelCall& call);
};

}  // namespace thimble
