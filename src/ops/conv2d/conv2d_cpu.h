// CPU kernels of conv2d and its gradients: direct convolutions, without a matrix of windows.
// README.md tells how.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

// y = windows of x * w transposed, line by line (line_convolution.h).
struct Conv2dCpu {
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

// dw = sum over pixels of windows of x times dy (grad_weight_cpu.cc).
struct Conv2dGradWeightCpu {
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

// dx = windows of dy * flipped w, line by line too, for each residue of the pixel position modulo
// the stride apart, since different taps reach them.
struct Conv2dGradInputCpu {
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

}  // namespace thimble
