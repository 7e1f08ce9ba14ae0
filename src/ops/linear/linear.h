// Kernels of linear and its gradients: products of matrices (device/cpu/gemm; plain floats on a
// GPU), and a column sum.
#pragma once

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

struct LinearCuda {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};

struct LinearGradWeightCuda {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};

struct LinearGradBiasCuda {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};

struct LinearGradInputCuda {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};

}  // namespace thimble
