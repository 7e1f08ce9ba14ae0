// CPU kernels of avg_pool2d and avg_pool2d_grad. Both gather: each position of the result sums what
// belongs to it, so that threads never write to the same place.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct AvgPool2dCpu {
  static void Run(const KernelCall& call);
};

struct AvgPool2dGradCpu {
  static void Run(const KernelCall& call);
};

}  // namespace thimble
