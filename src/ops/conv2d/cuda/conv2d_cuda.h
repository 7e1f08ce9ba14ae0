// GPU kernels of conv2d and its gradients. Short: both factors are stored in the same type of 16
// bits, the result in any type. Mixed: the weights are floats and rounded to the 16 bits of the
// other factor. TF32: any mix of types, and the default for floats; numbers of 16 bits are not
// rounded. fp32 is an option for floats. The plain kernels accept any mix of types and any shape
// whose sizes fit 32 bits.
#pragma once

#include "thimble/device/cuda/math.h"
#include "thimble/graph/kernel.h"
#include "thimble/ops/conv2d/cuda/sum_target.h"

namespace thimble {

struct Conv2dShortCuda {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;  // w
  static constexpr double kRounding = kShortRounding;
  static std::string_view Declines(const OpCall& call);
  static void Run(const KernelCall& call);
};
struct Conv2dMixedCuda : Conv2dShortCuda {
  static constexpr double kRounding = kMixedRounding;
  static std::string_view Declines(const OpCall& call);
};
struct Conv2dTf32Cuda {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;  // w
  static constexpr double kRounding = kTf32Rounding;
  static std::string_view Declines(const OpCall& call);
  static void Run(const KernelCall& call);
};
struct Conv2dFp32Cuda {
  static constexpr bool kTakesPacked = true;  // w
  static constexpr std::string_view kOption = kFp32Option;
  static std::string_view Declines(const OpCall& call);
  static void Run(const KernelCall& call);
};
struct Conv2dPlainCuda {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;  // w
  static std::string_view Declines(const OpCall& call);
  static void Run(const KernelCall& call);
};
struct Conv2dPlainFp32Cuda : Conv2dPlainCuda {
  static constexpr std::string_view kOption = kFp32Option;
};

// conv2d_add: the same kernels, which add when they store the result.
struct Conv2dAddShortCuda : Conv2dShortCuda {};
struct Conv2dAddMixedCuda : Conv2dMixedCuda {};
struct Conv2dAddTf32Cuda : Conv2dTf32Cuda {};
struct Conv2dAddFp32Cuda : Conv2dFp32Cuda {};
struct Conv2dAddPlainCuda : Conv2dPlainCuda {};
struct Conv2dAddPlainFp32Cuda : Conv2dPlainFp32Cuda {};

struct Conv2dGradInputShortCuda {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;  // w
  static constexpr double kRounding = kShortRounding;
  static std::string_view Declines(const OpCall& call);
  static void Run(const KernelCall& call);
};
struct Conv2dGradInputMixedCuda : Conv2dGradInputShortCuda {
  static constexpr double kRounding = kMixedRounding;
  static std::string_view Declines(const OpCall& call);
};
struct Conv2dGradInputTf32Cuda {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;  // w
  static constexpr double kRounding = kTf32Rounding;
  static std::string_view Declines(const OpCall& call);
  static void Run(const KernelCall& call);
};
struct Conv2dGradInputFp32Cuda {
  static constexpr bool kTakesPacked = true;  // w
  static constexpr std::string_view kOption = kFp32Option;
  static std::string_view Declines(const OpCall& call);
  static void Run(const KernelCall& call);
};
struct Conv2dGradInputPlainCuda {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;  // w
  static std::string_view Declines(const OpCall& call);
  static void Run(const KernelCall& call);
};
struct Conv2dGradInputPlainFp32Cuda : Conv2dGradInputPlainCuda {
  static constexpr std::string_view kOption = kFp32Option;
};

struct Conv2dGradWeightShortCuda {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;  // dw
  static constexpr double kRounding = kShortRounding;
  static std::string_view Declines(const OpCall& call);
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};
struct Conv2dGradWeightTf32Cuda {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;  // dw
  static constexpr double kRounding = kTf32Rounding;
  static std::string_view Declines(const OpCall& call);
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};
struct Conv2dGradWeightFp32Cuda {
  static constexpr bool kTakesPacked = true;  // dw
  static constexpr std::string_view kOption = kFp32Option;
  static std::string_view Declines(const OpCall& call);
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};
struct Conv2dGradWeightPlainCuda {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;  // dw
  static std::string_view Declines(const OpCall& call);
  static void Run(const KernelCall& call);
};
struct Conv2dGradWeightPlainFp32Cuda : Conv2dGradWeightPlainCuda {
  static constexpr std::string_view kOption = kFp32Option;
};

// ---- The same for ops that use the weight gradient at once (conv2d_update)

enum class GradWeightKernel { kShort, kTf32, kFp32, kPlain };

// Output channels [first, end) of a weight gradient.
struct OutChannels {
  int64_t first, end;
};

// `call` has the inputs x and dy, which others may follow, and the attributes of
// conv2d_grad_weight.
std::string_view GradWeightDeclines(GradWeightKernel kernel, const OpCall& call);
size_t GradWeightScratchBytes(GradWeightKernel kernel, const OpCall& call,
                              const OutChannels& channels);
// Computes a part of the gradient. The sums have the bits of the whole.
void LaunchGradWeight(GradWeightKernel kernel, const KernelCall& call, const OutChannels& channels,
                      std::byte* scratch, const SumTarget& dw);

}  // namespace thimble
