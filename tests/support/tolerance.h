// How far a result may be from the exact one. Every tolerance of the tests is made here: a named
// factor × the rounding of the number type × the size of what was summed.
#pragma once

#include <cmath>

namespace thimble {

// Half the distance from 1 to the next float, or double: the largest relative error of one
// rounding.
inline constexpr double kFloatRounding = 0x1p-24;
inline constexpr double kDoubleRounding = 0x1p-53;

// Kernels round a number more than once (input, product, result), mostly to different sides.
inline constexpr double kKernelFactor = 2;

// Of a float kernel's result. `spread` is how much the exact result moves when every input is moved
// by one unit relative to itself, to a random side: the sensitivity that no float kernel can
// escape. Errors of a running sum wander, so they grow with the square root of its length, whether
// its terms cancel (then the spread is large) or not (then the result is).
inline double KernelTolerance(double expected, double spread, double sum_size) {
  return kKernelFactor * kFloatRounding * std::sqrt(sum_size) * (std::abs(expected) + spread);
}

// A wrong gradient rule is off in its first digits; doubles leave room for generous rounding.
inline constexpr double kGradientFactor = 1024;

// Of a derivative computed in doubles; `magnitude` is the sum of its terms' absolute values.
inline double GradientTolerance(double magnitude, double sum_size) {
  return kGradientFactor * kDoubleRounding * magnitude * std::sqrt(sum_size);
}

}  // namespace thimble
