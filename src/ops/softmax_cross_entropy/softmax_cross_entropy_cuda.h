// softmax_cross_entropy and its gradient on a GPU.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct SoftmaxCrossEntropyCuda {
  static void Run(const KernelCall& call);
};

struct SoftmaxCrossEntropyGradCuda {
  static void Run(const KernelCall& call);
};

}  // namespace thimble
