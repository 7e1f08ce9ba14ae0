// CPU kernels of conv2d and its gradients: matrix products (device/cpu/gemm) whose long operand is
// a matrix of windows that exists panel by panel only.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

// y (pixels, O) = windows of x (pixels, KH*KW*C) * w transposed.
struct Conv2dCpu {
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

// dw (O, KH*KW*C) = dy transposed (O, pixels) * windows of x (pixels, KH*KW*C).
struct Conv2dGradWeightCpu {
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

// dx (pixels, C) = windows of dy (pixels, KH*KW*O) * flipped w, for each residue of the pixel
// position modulo the stride apart, since different taps reach them.
struct Conv2dGradInputCpu {
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

}  // namespace thimble
