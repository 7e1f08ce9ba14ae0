// Stores a tile of 16-bit numbers from the sums of two warpgroups.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/device/cuda/numbers.cuh"
#include "thimble/device/cuda/product/matrix_product.h"
#include "thimble/device/cuda/wide_product.cuh"

namespace thimble::wide {

// A result of 16-bit numbers to which nothing is added but a bias.
struct ShortTarget {
  void* result;       // (rows, columns), without gaps; begins at a multiple of 16 bytes
  ConstNumbers bias;  // (columns), or null
  int rows, columns;  // columns: a multiple of 8
};

// Whether a result in the type of the factors can be stored so.
inline bool IsShortTarget(const MatrixProduct& product) {
  return product.result.type == product.a.numbers.type && product.other.data == nullptr &&
         product.factor == nullptr && product.columns % 8 == 0 &&
         reinterpret_cast<uintptr_t>(product.result.data) % 16 == 0;
}

inline ShortTarget ShortTargetOf(const MatrixProduct& product) {
  return {product.result.data, product.bias, static_cast<int>(product.rows),
          static_cast<int>(product.columns)};
}

// The bias of a tile's columns, in shared memory; a barrier must follow.
template <int kColumns>
__device__ void LoadBias(const ShortTarget& target, int first_column, float* bias) {
  const auto i = static_cast<int>(threadIdx.x);
  if (i >= kColumns) return;
  const bool is_there = target.bias.data != nullptr && first_column + i < target.columns;
  bias[i] = is_there ? LoadNumber(AnyPointer<const void>(target.bias) + (first_column + i)) : 0.0F;
}

// Each warp stores its 16 rows by way of `tile` in shared memory, so that neighbouring threads
// store neighbouring 16 bytes.
template <class Short, int kColumns>
__device__ void StoreShortTile(const ShortTarget& target, int first_row, int first_column,
                               const float* bias, Short* tile,
                               const WarpgroupSums<kColumns>& sums) {
  constexpr int kPitch = kColumns + 8;  // spreads what is stored at once over all banks
  constexpr int kVector = 8;
  constexpr int kVectors = kColumns / kVector;  // of a row
  constexpr int kWarpRows = 16;
  static_assert(kWarpRows * kVectors % 32 == 0);
  ForEachPair<kColumns>([&](int row, int column, int i) {
    const float two[] = {sums[i] + bias[column], sums[i + 1] + bias[column + 1]};
    StorePack(two, tile + row * kPitch + column);
  });
  __syncwarp();
  const int first_warp_row = static_cast<int>(threadIdx.x) / 32 * kWarpRows;
  auto* result = static_cast<Short*>(target.result);
#pragma unroll
  for (int i = 0; i < kWarpRows * kVectors; i += 32) {
    const int vector = i + static_cast<int>(threadIdx.x) % 32;
    const int row = first_warp_row + vector / kVectors;
    const int column = vector % kVectors * kVector;
    if (first_row + row >= target.rows || first_column + column >= target.columns) continue;
    const int64_t at = int64_t{first_row + row} * target.columns + first_column + column;
    *reinterpret_cast<uint4*>(result + at) =
        *reinterpret_cast<const uint4*>(tile + row * kPitch + column);
  }
}

}  // namespace thimble::wide
