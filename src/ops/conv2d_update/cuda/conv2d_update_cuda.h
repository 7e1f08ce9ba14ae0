// GPU kernels of conv2d_update: those of conv2d_grad_weight, whose finished sums the second op uses
// at once, in the same launch. No gradient is stored, unless the momentum is q8, which has a scale
// for every 256 numbers: then a part of the gradient exists in scratch.
#pragma once

#include <cstddef>
#include <string_view>

#include "thimble/graph/kernel.h"
#include "thimble/ops/conv2d/cuda/conv2d_cuda.h"

namespace thimble {

enum class SecondOp { kAccumulate, kSgdGather, kSgdUpdate, kSgdUpdatePlain };

template <GradWeightKernel kFirst_>
struct Conv2dUpdateFirst {
  static constexpr GradWeightKernel kFirst = kFirst_;
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;  // arrays of the second op, with one pattern
  static std::string_view Declines(const OpCall& call) { return GradWeightDeclines(kFirst, call); }
};
struct Conv2dUpdateShort : Conv2dUpdateFirst<GradWeightKernel::kShort> {
  static constexpr double kRounding = kShortRounding;
};
struct Conv2dUpdateTf32 : Conv2dUpdateFirst<GradWeightKernel::kTf32> {
  static constexpr double kRounding = kTf32Rounding;
};
struct Conv2dUpdateFp32 : Conv2dUpdateFirst<GradWeightKernel::kFp32> {
  static constexpr std::string_view kOption = kFp32Option;
};
struct Conv2dUpdatePlain : Conv2dUpdateFirst<GradWeightKernel::kPlain> {};
struct Conv2dUpdatePlainFp32 : Conv2dUpdatePlain {
  static constexpr std::string_view kOption = kFp32Option;
};

size_t Conv2dUpdateCudaScratchBytes(GradWeightKernel first, const OpCall& call);
void RunConv2dUpdateCuda(GradWeightKernel first, SecondOp second, const KernelCall& call);

template <class First, SecondOp kSecond>
struct Conv2dUpdateCuda : First {
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
    return Conv2dUpdateCudaScratchBytes(First::kFirst, call);
  }
  static void Run(const KernelCall& call) { RunConv2dUpdateCuda(First::kFirst, kSecond, call); }
};

}  // namespace thimble
