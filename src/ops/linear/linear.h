// Kernels of linear and its gradients: products of matrices (device/cpu/gemm, device/cuda/product),
// and a column sum.
#pragma once

#include "thimble/device/cuda/math.h"
#include "thimble/graph/kernel.h"

namespace thimble {

// The rows of y or dy: all dimensions but the last.
inline int64_t LinearRows(const Shape& y) {
  int64_t rows = 1;
  for (size_t axis = 0; axis + 1 < y.rank(); ++axis) rows *= y[axis];
  return rows;
}

struct LinearCpu {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct LinearGradWeightCpu {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct LinearGradBiasCpu {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};

struct LinearGradInputCpu {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

// On a GPU. Short: both factors are stored in the same type of 16 bits. TF32: any types. Both
// decline few outputs, for which the plain kernels are faster: those take all calls, in fp32.
struct LinearShortCuda {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr double kRounding = kShortRounding;
  static std::string_view Declines(const OpCall& call);
  static void Run(const KernelCall& call);
};
struct LinearTf32Cuda {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr double kRounding = kTf32Rounding;
  static std::string_view Declines(const OpCall& call);
  static void Run(const KernelCall& call);
};
struct LinearCuda {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};
struct LinearFp32Cuda : LinearCuda {
  static constexpr std::string_view kOption = kFp32Option;
};

struct LinearGradWeightShortCuda {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr double kRounding = kShortRounding;
  static std::string_view Declines(const OpCall& call);
  static void Run(const KernelCall& call);
};
struct LinearGradWeightTf32Cuda {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr double kRounding = kTf32Rounding;
  static std::string_view Declines(const OpCall& call);
  static void Run(const KernelCall& call);
};
struct LinearGradWeightCuda {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};
struct LinearGradWeightFp32Cuda : LinearGradWeightCuda {
  static constexpr std::string_view kOption = kFp32Option;
};

struct LinearGradInputShortCuda {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr double kRounding = kShortRounding;
  static std::string_view Declines(const OpCall& call);
  static void Run(const KernelCall& call);
};
struct LinearGradInputTf32Cuda {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr double kRounding = kTf32Rounding;
  static std::string_view Declines(const OpCall& call);
  static void Run(const KernelCall& call);
};
struct LinearGradInputCuda {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};
struct LinearGradInputFp32Cuda : LinearGradInputCuda {
  static constexpr std::string_view kOption = kFp32Option;
};

struct LinearGradBiasCuda {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};

}  // namespace thimble
