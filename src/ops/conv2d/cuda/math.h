// How the factors of a convolution are multiplied on a GPU.
#pragma once

#include "thimble/tensor/dtype.h"

namespace thimble {

enum class Math {
  kTf32,  // rounded to 10 bits of mantissa, on tensor cores
  kFp32,  // unrounded
  kF16,   // stored in 16 bits or rounded to them, on tensor cores
  kBF16,  // the same
};

constexpr bool IsShort(Math math) { return math == Math::kF16 || math == Math::kBF16; }

// The type of a factor in shared memory.
template <Math kMath>
struct FactorOf {
  using Type = float;
};
template <>
struct FactorOf<Math::kF16> {
  using Type = F16;
};
template <>
struct FactorOf<Math::kBF16> {
  using Type = BF16;
};
template <Math kMath>
using Factor = typename FactorOf<kMath>::Type;

}  // namespace thimble
