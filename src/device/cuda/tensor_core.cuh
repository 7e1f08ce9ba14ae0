// Products of blocks on tensor cores with sums in fp32: `mma.sync` of sm_80 and later, 16x8 by 8x8
// in TF32 and 16x16 by 16x8 with factors of 16 bits, and loading their operands from shared memory
// into the lanes of a warp.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "thimble/tensor/dtype.h"

namespace thimble {

// TF32 keeps 10 bits of the mantissa; tensor cores do not read the others. Rounds to nearest, ties
// away from zero, to the bits that are read; NaN stays NaN.
__device__ inline float RoundToTf32(float x) {
  // 1.0 with x's sign and exponent, infinite if x is not finite; 2^-11 of it is half of the last
  // bit kept.
  const float one = __uint_as_float(__float_as_uint(x) & 0xFF800000U);
  return fmaf(one, 0x1p-11F, x);
}
__device__ inline float4 RoundToTf32(const float4& x) {
  return make_float4(RoundToTf32(x.x), RoundToTf32(x.y), RoundToTf32(x.z), RoundToTf32(x.w));
}

// Blocks as the lanes of a warp hold them, in words of 32 bits: a word is a float, or two
// neighbours in the inner dimension of 16 bits each. With g = lane / 4 and t = lane % 4:
// A (16 x 8 words): (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)
struct TensorCoreA {
  uint32_t values[4];
};
// B (8 words x 8): (t, g), (t + 4, g)
struct TensorCoreB {
  uint32_t values[2];
};
// Sums (16 x 8): (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).

// Number is the type of the factors: float (read as TF32), F16 or BF16.
template <class Number>
__device__ inline void MultiplyAdd(const TensorCoreA& a, const TensorCoreB& b, float (&sums)[4]) {
#define THIMBLE_MULTIPLY_ADD(shape_and_types)                                                     \
  asm("mma.sync.aligned." shape_and_types                                                         \
      " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                          \
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])                                \
      : "r"(a.values[0]), "r"(a.values[1]), "r"(a.values[2]), "r"(a.values[3]), "r"(b.values[0]), \
        "r"(b.values[1]))
  if constexpr (std::is_same_v<Number, F16>) {
    THIMBLE_MULTIPLY_ADD("m16n8k16.row.col.f32.f16.f16.f32");
  } else if constexpr (std::is_same_v<Number, BF16>) {
    THIMBLE_MULTIPLY_ADD("m16n8k16.row.col.f32.bf16.bf16.f32");
  } else {
    THIMBLE_MULTIPLY_ADD("m16n8k8.row.col.f32.tf32.tf32.f32");
  }
#undef THIMBLE_MULTIPLY_ADD
}

__device__ inline uint32_t SharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// Four blocks of 8 rows of 4 words; lane i passes the address of row i % 8 of block i / 8 (16-byte
// aligned) and receives word (lane / 4, lane % 4) of each.
__device__ inline void LoadMatrices(uint32_t address, uint32_t (&values)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(values[0]), "=r"(values[1]), "=r"(values[2]), "=r"(values[3])
               : "r"(address));
}

// The same for blocks of 8 x 8 numbers of 16 bits, transposed: the lane receives the numbers of
// rows 2 * (lane % 4) and the next one in column lane / 4.
__device__ inline void LoadTransposed(uint32_t address, uint32_t (&values)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(values[0]), "=r"(values[1]), "=r"(values[2]), "=r"(values[3])
               : "r"(address));
}

// Loads A from rows of memory: each lane passes the address of its row and column of words.
__device__ constexpr int RowOfLaneA(int lane) { return lane % 16; }
__device__ constexpr int ColumnOfLaneA(int lane) { return lane / 16 * 4; }
__device__ inline void LoadA(uint32_t address, TensorCoreA& a) { LoadMatrices(address, a.values); }

// Loads two neighbouring B from 16 rows of memory, each a column of B (its 8 words of the inner
// dimension are adjacent).
__device__ constexpr int RowOfLaneB(int lane) { return lane % 8 + lane / 16 * 8; }
__device__ constexpr int ColumnOfLaneB(int lane) { return lane / 8 % 2 * 4; }
__device__ inline void LoadTwoB(uint32_t address, TensorCoreB& first, TensorCoreB& second) {
  uint32_t values[4];
  LoadMatrices(address, values);
  first = {{values[0], values[1]}};
  second = {{values[2], values[3]}};
}

// The same for factors of 16 bits whose inner dimension is not contiguous in memory. A is loaded
// from 16 rows of 16 numbers, each a column of A; two neighbouring B from 16 rows of 16 numbers,
// the inner dimension downwards.
__device__ constexpr int RowOfLaneTransposedA(int lane) { return lane % 8 + lane / 16 * 8; }
__device__ constexpr int ColumnOfLaneTransposedA(int lane) { return lane / 8 % 2 * 8; }
__device__ inline void LoadTransposedA(uint32_t address, TensorCoreA& a) {
  LoadTransposed(address, a.values);
}
__device__ constexpr int RowOfLaneTransposedB(int lane) { return lane % 16; }
__device__ constexpr int ColumnOfLaneTransposedB(int lane) { return lane / 16 * 8; }
__device__ inline void LoadTwoTransposedB(uint32_t address, TensorCoreB& first,
                                          TensorCoreB& second) {
  uint32_t values[4];
  LoadTransposed(address, values);
  first = {{values[0], values[1]}};
  second = {{values[2], values[3]}};
}

}  // namespace thimble
