// avg_pool2d and avg_pool2d_grad on a GPU. Both gather, as on the CPU.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct AvgPool2dCuda {
  static void Run(const KernelCall& call);
};

struct AvgPool2dGradCuda {
  static void Run(const KernelCall& call);
};

}  // namespace thimble
