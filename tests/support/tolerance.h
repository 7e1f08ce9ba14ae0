// Tolerances. Every tolerance of the tests is defined here: a named factor × the rounding of the
// number type × the size of the sum.
#pragma once

#include <cmath>

#include "thimble/tensor/dtype.h"

namespace thimble {

// Half the distance from 1 to the next float, or double: the largest relative error of one
// rounding.
inline constexpr double kFloatRounding = 0x1p-24;
inline constexpr double kDoubleRounding = 0x1p-53;

// Kernels round a number more than once (input, product, result), mostly in different directions.
inline constexpr double kKernelFactor = 2;

// For a float kernel's result. `spread` is how much the exact result changes if every input changes
// by one unit relative to itself, with random sign: an error that no float kernel can avoid. Errors
// of a running sum are a random walk, so they grow with the square root of its length, whether its
// terms cancel (then the spread is large) or not (then the result is large).
inline double KernelTolerance(double expected, double spread, double sum_size) {
  return kKernelFactor * kFloatRounding * std::sqrt(sum_size) * (std::abs(expected) + spread);
}

// The largest error of storing a number: relative, and absolute for numbers that are too small for
// all digits.
inline double StorageTolerance(double number, DType type) {
  if (type == DType::kF16) return 0x1p-11 * std::abs(number) + 0x1p-25;
  return type == DType::kBF16 ? 0x1p-8 * std::abs(number) : 0;
}

// A wrong gradient rule differs in its first digits, so the factor for doubles can be generous.
inline constexpr double kGradientFactor = 1024;

// For a derivative computed in doubles; `magnitude` is the sum of its terms' absolute values.
inline double GradientTolerance(double magnitude, double sum_size) {
  return kGradientFactor * kDoubleRounding * magnitude * std::sqrt(sum_size);
}

}  // namespace thimble
