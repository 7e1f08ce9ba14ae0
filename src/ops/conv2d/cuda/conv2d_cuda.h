// GPU kernels of conv2d and its gradients. TF32 is the default, fp32 is an option; the plain
// kernels accept any shape whose sizes fit 32 bits.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

// TF32 rounds factors to 10 bits of mantissa where fp32 keeps 23.
inline constexpr double kTf32Rounding = 8192;
inline constexpr std::string_view kFp32Option = "fp32";

struct Conv2dTf32Cuda {
  static constexpr double kRounding = kTf32Rounding;
  static std::string_view Declines(const OpCall& call);
  static void Run(const KernelCall& call);
};
struct Conv2dFp32Cuda {
  static constexpr std::string_view kOption = kFp32Option;
  static std::string_view Declines(const OpCall& call);
  static void Run(const KernelCall& call);
};
struct Conv2dPlainCuda {
  static constexpr bool kTakesShortNumbers = true;
  static std::string_view Declines(const OpCall& call);
  static void Run(const KernelCall& call);
};
struct Conv2dPlainFp32Cuda : Conv2dPlainCuda {
  static constexpr std::string_view kOption = kFp32Option;
};

// conv2d_add: the same kernels, which add when they store the result.
struct Conv2dAddTf32Cuda : Conv2dTf32Cuda {};
struct Conv2dAddFp32Cuda : Conv2dFp32Cuda {};
struct Conv2dAddPlainCuda : Conv2dPlainCuda {};
struct Conv2dAddPlainFp32Cuda : Conv2dPlainFp32Cuda {};

struct Conv2dGradInputTf32Cuda {
  static constexpr double kRounding = kTf32Rounding;
  static std::string_view Declines(const OpCall& call);
  static void Run(const KernelCall& call);
};
struct Conv2dGradInputFp32Cuda {
  static constexpr std::string_view kOption = kFp32Option;
  static std::string_view Declines(const OpCall& call);
  static void Run(const KernelCall& call);
};
struct Conv2dGradInputPlainCuda {
  static constexpr bool kTakesShortNumbers = true;
  static std::string_view Declines(const OpCall& call);
  static void Run(const KernelCall& call);
};
struct Conv2dGradInputPlainFp32Cuda : Conv2dGradInputPlainCuda {
  static constexpr std::string_view kOption = kFp32Option;
};

struct Conv2dGradWeightTf32Cuda {
  static constexpr double kRounding = kTf32Rounding;
  static std::string_view Declines(const OpCall& call);
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};
struct Conv2dGradWeightFp32Cuda {
  static constexpr std::string_view kOption = kFp32Option;
  static std::string_view Declines(const OpCall& call);
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};
struct Conv2dGradWeightPlainCuda {
  static constexpr bool kTakesShortNumbers = true;
  static std::string_view Declines(const OpCall& call);
  static void Run(const KernelCall& call);
};
struct Conv2dGradWeightPlainFp32Cuda : Conv2dGradWeightPlainCuda {
  static constexpr std::string_view kOption = kFp32Option;
};

}  // namespace thimble
