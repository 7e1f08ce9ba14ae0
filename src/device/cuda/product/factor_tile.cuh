// A part of a factor in shared memory: numbers of all rows (or columns) of a block's tile, for 128
// bytes of the inner dimension. Lines are as they are in memory, along the inner dimension or
// across it, with a gap between them that spreads what tensor cores read over all banks.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "thimble/device/cuda/async_copy.cuh"
#include "thimble/device/cuda/load_singly.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/device/cuda/product/matrix_product.h"
#include "thimble/device/cuda/tensor_core.cuh"

namespace thimble::product {

// How groups of 16 bytes come into shared memory.
enum class Copying {
  kGroups,  // as a whole
  kWords,   // in words of 4 bytes, because lines begin anywhere
  kSingly,  // number by number: those of another type, or lines at odd addresses
};

struct FactorSource {
  ConstNumbers numbers;
  Copying copying;
};

// The factor has so many rows or columns and places of the inner dimension. `type` is that of its
// numbers in shared memory.
inline FactorSource SourceOf(const ProductFactor& from, int64_t outer, int64_t inner, DType type) {
  const int64_t line = from.lines_across ? outer : inner;
  const int64_t line_bytes = line * static_cast<int64_t>(SizeBytes(type));
  const auto address = reinterpret_cast<uintptr_t>(from.numbers.data);
  const auto fits = [&](int bytes) { return line_bytes % bytes == 0 && address % bytes == 0; };
  Copying copying = Copying::kSingly;
  if (from.numbers.type == type && fits(4)) {
    copying = fits(kCopiedBytes) ? Copying::kGroups : Copying::kWords;
  }
  return {from.numbers, copying};
}

template <class Number>
inline constexpr int kGroup = static_cast<int>(kCopiedBytes / sizeof(Number));

// Copies numbers [index, index + valid) to a group, and zeros after them.
template <class Number>
__device__ void CopyGroup(const FactorSource& from, int64_t index, int valid, Number* to) {
  constexpr int kSize = static_cast<int>(sizeof(Number));
  constexpr int kWord = 4 / kSize;  // numbers
  const auto* numbers = static_cast<const Number*>(from.numbers.data);
  if (from.copying == Copying::kGroups) {
    CopyBytesAsync(to, numbers + (valid > 0 ? index : 0), kSize * valid);
  } else if (from.copying == Copying::kWords) {
#pragma unroll
    for (int i = 0; i < kGroup<Number>; i += kWord) {
      const int left = min(max(valid - i, 0), kWord);
      CopyWordAsync(to + i, numbers + (left > 0 ? index + i : 0), kSize * left);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kGroup<Number>; i += 4) {
      const AnyPointer<const void> at = from.numbers;
      StoreFour(LoadSingly(at + (valid > i ? index + i : 0), valid - i), to + i);
    }
  }
}

template <class Number, bool kAcross, int kOuter>
struct FactorTile {
  static constexpr bool kShort = sizeof(Number) == 2;
  static constexpr int kInner = static_cast<int>(128 / sizeof(Number));
  static constexpr int kSteps = 4;  // products of tensor cores along the inner dimension
  static constexpr int kStepInner = kInner / kSteps;
  static constexpr int kLines = kAcross ? kInner : kOuter;
  static constexpr int kLineGroups = (kAcross ? kOuter : kInner) / kGroup<Number>;
  // Tensor cores read 8 lines of 16 bytes at once, or, of floats across, 4 lines of 32 bytes.
  static constexpr int kPitch =
      kLineGroups * kGroup<Number> + (kAcross && !kShort ? 8 : kGroup<Number>);
  static constexpr int kNumbers = kLines * kPitch;
  static_assert(kOuter % 32 == 0);

  // Copies the part that begins at these places of a matrix of outer x inner numbers; zeros beyond
  // its ends. All threads of a block call it.
  template <int kThreads>
  __device__ static void Copy(const FactorSource& from, int first_outer, int outer, int first_inner,
                              int inner, Number* tile) {
    const int first_line = kAcross ? first_inner : first_outer;
    const int first_number = kAcross ? first_outer : first_inner;
    const int lines = kAcross ? inner : outer;
    const int numbers = kAcross ? outer : inner;
    for (int i = static_cast<int>(threadIdx.x); i < kLines * kLineGroups; i += kThreads) {
      const int line = i / kLineGroups;
      const int number = i % kLineGroups * kGroup<Number>;
      const int left = first_line + line < lines ? numbers - first_number - number : 0;
      CopyGroup(from, int64_t{first_line + line} * numbers + first_number + number,
                min(max(left, 0), kGroup<Number>), tile + line * kPitch + number);
    }
  }

  // 16 rows from `row` on, at a step of the inner dimension.
  __device__ static void Load(const Number* tile, int row, int step, TensorCoreA& a) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if constexpr (!kAcross) {
      LoadA(SharedAddress(tile + (row + RowOfLaneA(lane)) * kPitch + step * kStepInner) +
                4 * ColumnOfLaneA(lane),
            a);
    } else if constexpr (kShort) {
      const int line = step * kStepInner + RowOfLaneTransposedA(lane);
      LoadTransposedA(SharedAddress(tile + line * kPitch + row + ColumnOfLaneTransposedA(lane)), a);
    } else {
      const Number* at = tile + (step * kStepInner + lane % 4) * kPitch + row + lane / 4;
      a = {{__float_as_uint(at[0]), __float_as_uint(at[8]), __float_as_uint(at[4 * kPitch]),
            __float_as_uint(at[4 * kPitch + 8])}};
    }
    if constexpr (!kShort) Round(a.values);
  }
  // 16 columns from `column` on, as two neighbouring blocks.
  __device__ static void LoadTwo(const Number* tile, int column, int step, TensorCoreB& first,
                                 TensorCoreB& second) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if constexpr (!kAcross) {
      LoadTwoB(SharedAddress(tile + (column + RowOfLaneB(lane)) * kPitch + step * kStepInner) +
                   4 * ColumnOfLaneB(lane),
               first, second);
    } else if constexpr (kShort) {
      const int line = step * kStepInner + RowOfLaneTransposedB(lane);
      LoadTwoTransposedB(
          SharedAddress(tile + line * kPitch + column + ColumnOfLaneTransposedB(lane)), first,
          second);
    } else {
      const Number* at = tile + (step * kStepInner + lane % 4) * kPitch + column + lane / 4;
      first = {{__float_as_uint(at[0]), __float_as_uint(at[4 * kPitch])}};
      second = {{__float_as_uint(at[8]), __float_as_uint(at[4 * kPitch + 8])}};
    }
    if constexpr (!kShort) {
      Round(first.values);
      Round(second.values);
    }
  }

 private:
  template <int kCount>
  __device__ static void Round(uint32_t (&values)[kCount]) {
#pragma unroll
    for (uint32_t& value : values) {
      value = __float_as_uint(RoundToTf32(__uint_as_float(value)));
    }
  }
};

}  // namespace thimble::product
