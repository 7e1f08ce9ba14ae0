// CPU kernels of the conv2d ops, limited by arithmetic: direct convolutions, without a matrix of
// windows. README.md explains how. winograd/ and cuda/ have their own kernels.
#pragma once

#include "thimble/graph/kernel.h"
#include "thimble/ops/conv2d/winograd/winograd_cpu.h"

namespace thimble {

// y = windows of x * w transposed, line by line (line_convolution.h).
struct Conv2dCpu {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;  // w
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

// dw = sum over pixels of windows of x times dy (grad_weight_sums.h).
struct Conv2dGradWeightCpu {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;  // dw
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

// dx = windows of dy * flipped w, also line by line, separately for each residue of the pixel
// position modulo the stride, since different taps reach them.
struct Conv2dGradInputCpu {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;  // w
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

// conv2d_add: what is added is added to complete sums. Scratch is that of the convolution.
struct Conv2dAddCpu : Conv2dCpu {
  static void Run(const KernelCall& call);
};

}  // namespace thimble
