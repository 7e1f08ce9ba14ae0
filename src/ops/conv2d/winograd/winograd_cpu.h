// CPU kernels of conv2d and its gradients by Winograd's F(4 x 4, 3 x 3): a quarter of the
// multiplications for 3 x 3 filters with stride 1. It sums different numbers than a plain
// convolution, so results differ by rounding, with about twice the error; therefore only used with
// --conv winograd.
#pragma once

#include <string_view>

#include "thimble/graph/kernel.h"

namespace thimble {

// Errors scale with the outputs of a whole tile; on average they are about twice those of a plain
// sum.
inline constexpr double kWinogradRounding = 4;

struct WinogradKernel {
  static constexpr std::string_view kOption = "winograd";
  static constexpr double kRounding = kWinogradRounding;
  static constexpr bool kMixesOutputs = true;
  static constexpr bool kTakesShortNumbers = true;
};

struct Conv2dWinogradCpu : WinogradKernel {
  static std::string_view Declines(const OpCall& call);
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

// conv2d_add: what is added is added while outputs are stored.
struct Conv2dAddWinogradCpu : Conv2dWinogradCpu {
  static void Run(const KernelCall& call);
};

struct Conv2dGradInputWinogradCpu : WinogradKernel {
  static std::string_view Declines(const OpCall& call);
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct Conv2dGradWeightWinogradCpu : WinogradKernel {
  static std::string_view Declines(const OpCall& call);
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

}  // namespace thimble
