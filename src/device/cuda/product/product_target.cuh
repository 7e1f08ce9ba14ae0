// Where the tiles of a product are stored.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/device/cuda/cluster_sums.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/device/cuda/product/matrix_product.h"

namespace thimble::product {

struct Target {
  Numbers result;       // (rows, columns)
  ConstNumbers bias;    // (columns), or null
  ConstNumbers other;   // (rows, columns), or null
  const float* factor;  // or null
  int rows, columns;
};

inline Target TargetOf(const MatrixProduct& product) {
  return {product.result,
          product.bias,
          product.other,
          product.factor,
          static_cast<int>(product.rows),
          static_cast<int>(product.columns)};
}

// Stores kCount neighbouring sums, after adding what is to be added.
template <int kCount>
__device__ void StoreSums(const Target& target, int row, int column, float (&sums)[kCount]) {
  const int64_t at = int64_t{row} * target.columns + column;
  const auto add = [&](AnyPointer<const void> from) {
    const auto added = LoadPack<kCount>(from);
#pragma unroll
    for (int k = 0; k < kCount; ++k) sums[k] += added[k];
  };
  if (target.other.data != nullptr) add(AnyPointer<const void>(target.other) + at);
  if (target.factor != nullptr) {
    const float factor = *target.factor;
#pragma unroll
    for (int k = 0; k < kCount; ++k) sums[k] *= factor;
  }
  if (target.bias.data != nullptr) add(AnyPointer<const void>(target.bias) + column);
  const AnyPointer<void> to = AnyPointer<void>(target.result) + at;
  if constexpr (kCount == 1) {
    StoreNumber(sums[0], to);
  } else {
    StorePack(sums, to);
  }
}

// Adds up the sums of a cluster's blocks, which are at the same place of their shared memory,
// `pitch` floats from row to row. Each block stores a part of the tile.
template <int kThreads, int kRows, int kColumns>
__device__ void StoreTile(const Target& target, int first_row, int first_column, int cluster_blocks,
                          const float* sums, int pitch) {
  constexpr int kFours = kColumns / 4;
  const bool fours = target.columns % 4 == 0;
  const int rank = static_cast<int>(blockIdx.x) % cluster_blocks;
  for (int i = rank * kThreads + static_cast<int>(threadIdx.x); i < kRows * kFours;
       i += cluster_blocks * kThreads) {
    const int row = i / kFours;
    const int column = first_column + i % kFours * 4;
    if (first_row + row >= target.rows || column >= target.columns) continue;
    float four[4];
    AddUpFour(sums + row * pitch + i % kFours * 4, cluster_blocks, four);
    if (fours) {
      StoreSums(target, first_row + row, column, four);
      continue;
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      float one[] = {four[k]};
      if (column + k < target.columns) StoreSums(target, first_row + row, column + k, one);
    }
  }
}

}  // namespace thimble::product
