// The kernels of Adam with a second moment that is kept as means of rows and of columns
// (adam_factored.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "thimble/graph/kernel.h"
#include "thimble/ops/adam_update/adam_update.h"

namespace thimble {

// A tensor as a matrix: its first dimension, and all others.
struct AdamMatrix {
  int64_t rows, columns;

  explicit AdamMatrix(const Shape& shape)
      : rows(shape[0]), columns(rows == 0 ? 0 : shape.elements() / rows) {}
};

// Where an op has its inputs: arrays, means of rows, means of columns, then single numbers.
struct AdamFactoredInputs {
  AdamInputs inputs;  // `arrays` without the means, which follow them
  size_t rows;
  size_t columns;
};
inline constexpr AdamFactoredInputs kFactoredUpdateInputs{{3, 5, kNoAdamInput, 6, 7}, 3, 4};
inline constexpr AdamFactoredInputs kFactoredGatherInputs{{2, kNoAdamInput, 4, 5, 6}, 2, 3};
inline constexpr AdamFactoredInputs kFactoredApplyInputs{
    {2, 4, kNoAdamInput, 5, kNoAdamInput}, 2, 3};

// Without the bound of adam_update: the first moment of an element may be large beside the product
// of its row and column.
inline AdamFactors Unbounded(AdamFactors factors) {
  factors.bound_slope = 0;
  factors.bound_offset = std::numeric_limits<double>::infinity();
  return factors;
}

struct AdamFactoredUpdateCpu {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};
struct AdamFactoredGatherCpu {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};
struct AdamFactoredApplyCpu {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct AdamFactoredUpdateCuda {
  static constexpr bool kTakesShortNumbers = true;
  static std::string_view Declines(const OpCall& call);
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};
struct AdamFactoredGatherCuda {
  static constexpr bool kTakesShortNumbers = true;
  static std::string_view Declines(const OpCall& call);
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};
struct AdamFactoredApplyCuda {
  static constexpr bool kTakesShortNumbers = true;
  static std::string_view Declines(const OpCall& call);
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

}  // namespace thimble
