// CPU kernels of conv2d_add: the convolution, and a second pass that adds.
#pragma once

#include "thimble/ops/conv2d/conv2d_cpu.h"
#include "thimble/ops/conv2d/winograd/winograd_cpu.h"

namespace thimble {

// Declines, options and scratch are the convolution's.
struct Conv2dAddCpu : Conv2dCpu {
  static void Run(const KernelCall& call);
};
struct Conv2dAddWinogradCpu : Conv2dWinogradCpu {
  static void Run(const KernelCall& call);
};

}  // namespace thimble
