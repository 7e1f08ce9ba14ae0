// How the factors of products and convolutions are multiplied on a GPU.
#pragma once

#include <string_view>

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
struct MathFactor {
  using Type = float;
};
template <>
struct MathFactor<Math::kF16> {
  using Type = F16;
};
template <>
struct MathFactor<Math::kBF16> {
  using Type = BF16;
};
template <Math kMath>
using Factor = typename MathFactor<kMath>::Type;

// ---- How much wider the tolerances of tests are than those of products in fp32

// TF32 rounds factors to 10 bits of mantissa where fp32 keeps 23.
inline constexpr double kTf32Rounding = 8192;
// Products of numbers of 16 bits are exact, but tensor cores cut off the last bits of sums.
inline constexpr double kShortRounding = 8;
// bf16 rounds to 7 bits of mantissa.
inline constexpr double kMixedRounding = 65536;

// The option of kernels that multiply in fp32, where others use TF32.
inline constexpr std::string_view kFp32Option = "fp32";

}  // namespace thimble
