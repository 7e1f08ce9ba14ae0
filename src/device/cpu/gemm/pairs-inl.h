// The products of pairs (pairs.h) in the innermost loops, for code that Highway compiles once per
// SIMD target.

// Highway's include guard: the file is included again for every target.
#if defined(THIMBLE_DEVICE_CPU_GEMM_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THIMBLE_DEVICE_CPU_GEMM_PAIRS_INL_H_
#undef THIMBLE_DEVICE_CPU_GEMM_PAIRS_INL_H_
#else
#define THIMBLE_DEVICE_CPU_GEMM_PAIRS_INL_H_
#endif

#include <hwy/highway.h>

#include "thimble/device/cpu/simd_target.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {

// Whether this target's code includes products of pairs; the machine may still not have them.
constexpr bool kHasPairProducts = kCompilesPairProducts && HWY_TARGET == HWY_AVX3;

// sum + a * b, for floats or for pairs of bf16 (both products are added).
template <bool kPairs, class Vector>
HWY_INLINE Vector AddProduct(Vector a, Vector b, Vector sum) {
  if constexpr (kPairs) {
    // Not the intrinsic: it requires that the compiler may use AVX-512 BF16 everywhere in this
    // function, but only some machines with AVX-512 have it.
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
    return sum;
  } else {
    return hwy::HWY_NAMESPACE::MulAdd(a, b, sum);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#endif  // include guard
