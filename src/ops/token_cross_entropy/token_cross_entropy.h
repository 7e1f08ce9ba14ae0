// Kernels of token_cross_entropy and its gradient: matrix products (device/cpu/gemm) over slices of
// the vocabulary, a block of tokens at a time. Exponentials take a few percent of the time.
#pragma once

#include "thimble/device/cuda/math.h"
#include "thimble/graph/kernel.h"

namespace thimble {

struct TokenCrossEntropyCpu {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct TokenCrossEntropyGradCpu {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

// On a GPU, matrix products (device/cuda/product) of some tokens at a time with the whole
// vocabulary.
struct TokenCrossEntropyShortCuda {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr double kRounding = kShortRounding;
  static std::string_view Declines(const OpCall& call);
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};
struct TokenCrossEntropyTf32Cuda {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr double kRounding = kTf32Rounding;
  static std::string_view Declines(const OpCall& call);
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};
struct TokenCrossEntropyFp32Cuda : TokenCrossEntropyTf32Cuda {
  static constexpr double kRounding = 1;
  static constexpr std::string_view kOption = kFp32Option;
  static void Run(const KernelCall& call);
};

struct TokenCrossEntropyGradShortCuda {
  static constexpr bool kTakesShortNumbers = true;
  // Factors are rounded to the 16 bits of x and w.
  static constexpr double kRounding = kMixedRounding;
  static std::string_view Declines(const OpCall& call);
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};
struct TokenCrossEntropyGradTf32Cuda {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr double kRounding = kTf32Rounding;
  static std::string_view Declines(const OpCall& call);
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};
struct TokenCrossEntropyGradFp32Cuda : TokenCrossEntropyGradTf32Cuda {
  static constexpr double kRounding = 1;
  static constexpr std::string_view kOption = kFp32Option;
  static void Run(const KernelCall& call);
};

}  // namespace thimble
