// A block computes 128 rows by kColumns columns of a product with `mma.sync`. Parts of the factors
// are in shared memory: one is multiplied while the next ones are copied. If there are few tiles,
// the blocks of a cluster share the inner dimension and add up their sums.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "thimble/device/cuda/async_copy.cuh"
#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/cluster.cuh"
#include "thimble/device/cuda/cluster_sums.cuh"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/product/factor_tile.cuh"
#include "thimble/device/cuda/product/product_target.cuh"
#include "thimble/device/cuda/tensor_core.cuh"

namespace thimble::product {

inline constexpr int kTileRows = 128;
inline constexpr int kTileThreads = 256;
inline constexpr int kTileWarps = kTileThreads / 32;
inline constexpr int kStages = 3;

// How a block divides a tile among its warps: each has kBlocksM x kBlocksN blocks of 16 x 8 sums.
template <class Number_, bool kAcrossA, bool kAcrossB, int kColumns_>
struct TileProduct {
  using Number = Number_;
  static constexpr int kColumns = kColumns_;
  static constexpr int kWarpColumns = 32;
  static constexpr int kWarpsAcross = kColumns / kWarpColumns;
  static constexpr int kWarpRows = kTileRows / (kTileWarps / kWarpsAcross);
  static constexpr int kBlocksM = kWarpRows / 16;
  static constexpr int kBlocksN = kWarpColumns / 8;
  using A = FactorTile<Number, kAcrossA, kTileRows>;
  using B = FactorTile<Number, kAcrossB, kColumns>;
  static constexpr int kStageNumbers = A::kNumbers + B::kNumbers;
  // Sums in shared memory, [row][column]. Rows are shifted by eight banks.
  static constexpr int kPitch = kColumns + 8;
  static constexpr int kSharedBytes =
      std::max(static_cast<int>(kStages * kStageNumbers * sizeof(Number)),
               static_cast<int>(kTileRows* kPitch * sizeof(float)));
};

template <class P>
using TileSums = float[P::kBlocksM][P::kBlocksN][4];

template <class P>
__device__ void MultiplyPart(const typename P::Number* stage, int row, int column,
                             TileSums<P>& sums) {
#pragma unroll
  for (int step = 0; step < P::A::kSteps; ++step) {
    TensorCoreA a[P::kBlocksM];
    TensorCoreB b[P::kBlocksN];
#pragma unroll
    for (int m = 0; m < P::kBlocksM; ++m) P::A::Load(stage, row + 16 * m, step, a[m]);
#pragma unroll
    for (int n = 0; n < P::kBlocksN; n += 2) {
      P::B::LoadTwo(stage + P::A::kNumbers, column + 8 * n, step, b[n], b[n + 1]);
    }
#pragma unroll
    for (int m = 0; m < P::kBlocksM; ++m) {
#pragma unroll
      for (int n = 0; n < P::kBlocksN; ++n) {
        MultiplyAdd<typename P::Number>(a[m], b[n], sums[m][n]);
      }
    }
  }
}

// Blocks: x over tiles of rows, the blocks of a cluster first; y over tiles of columns.
template <class P>
__global__ void __launch_bounds__(kTileThreads, 2)
    TileProductKernel(int inner, int cluster_blocks, const __grid_constant__ FactorSource a,
                      const __grid_constant__ FactorSource b,
                      const __grid_constant__ Target target) {
  extern __shared__ float shared[];
  using Number = typename P::Number;
  auto* stages = reinterpret_cast<Number*>(shared);
  const int first_row = static_cast<int>(blockIdx.x) / cluster_blocks * kTileRows;
  const int first_column = static_cast<int>(blockIdx.y) * P::kColumns;
  const PartRange range = PartsOf(static_cast<int>(blockIdx.x) % cluster_blocks, cluster_blocks,
                                  (inner + P::A::kInner - 1) / P::A::kInner);
  const auto copy = [&](int part) {
    if (part < range.count) {
      Number* stage = stages + part % kStages * P::kStageNumbers;
      const int first = (range.first + part) * P::A::kInner;
      P::A::template Copy<kTileThreads>(a, first_row, target.rows, first, inner, stage);
      P::B::template Copy<kTileThreads>(b, first_column, target.columns, first, inner,
                                        stage + P::A::kNumbers);
    }
    CommitCopies();  // also without copies: WaitForCopiesBut counts
  };
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int row = warp / P::kWarpsAcross * P::kWarpRows;
  const int column = warp % P::kWarpsAcross * P::kWarpColumns;
  TileSums<P> sums = {};
  WaitForKernelsBefore(NextKernels::kLater);
#pragma unroll
  for (int part = 0; part < kStages - 1; ++part) copy(part);
  for (int part = 0; part < range.count; ++part) {
    WaitForCopiesBut<kStages - 2>();
    __syncthreads();  // the part is there, and the one before it is no longer read
    copy(part + kStages - 1);
    MultiplyPart<P>(stages + part % kStages * P::kStageNumbers, row, column, sums);
  }
  LetNextKernelsBegin();
  WaitForCopies();
  __syncthreads();  // no stage is read any more
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int m = 0; m < P::kBlocksM; ++m) {
#pragma unroll
    for (int n = 0; n < P::kBlocksN; ++n) {
      float* at = shared + (row + 16 * m + lane / 4) * P::kPitch + column + 8 * n + lane % 4 * 2;
      *reinterpret_cast<float2*>(at) = make_float2(sums[m][n][0], sums[m][n][1]);
      *reinterpret_cast<float2*>(at + 8 * P::kPitch) = make_float2(sums[m][n][2], sums[m][n][3]);
    }
  }
  SyncCluster();
  StoreTile<kTileThreads, kTileRows, P::kColumns>(target, first_row, first_column, cluster_blocks,
                                                  shared, P::kPitch);
  SyncBeforeEnd();  // until here others read this block's sums
}

// Enough blocks for a large GPU, of which each has several parts. Depends on the shape and on
// whether the GPU has clusters.
inline int ClusterBlocksFor(int64_t tiles, int parts) {
  constexpr int64_t kMostBlocks = 264;  // places of an H200
  constexpr int kFewestParts = 2;
  int blocks = 1;
  while (HasClusters() && blocks < kMaxClusterBlocks && 2 * blocks * tiles <= kMostBlocks &&
         parts >= 2 * blocks * kFewestParts) {
    blocks *= 2;
  }
  return blocks;
}

template <class P>
void LaunchTiles(cudaStream_t stream, const MatrixProduct& product, DType type) {
  const auto kernel = TileProductKernel<P>;
  static const bool prepared = [&] {
    THIMBLE_CUDA(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, P::kSharedBytes));
    return true;
  }();
  static_cast<void>(prepared);
  const auto tiles = [](int64_t count, int size) {
    return static_cast<unsigned>((count + size - 1) / size);
  };
  const unsigned rows = tiles(product.rows, kTileRows);
  const unsigned columns = tiles(product.columns, P::kColumns);
  const auto inner = static_cast<int>(product.inner);
  const int blocks =
      ClusterBlocksFor(int64_t{rows} * columns, (inner + P::A::kInner - 1) / P::A::kInner);
  LaunchClusters(stream, dim3(rows * static_cast<unsigned>(blocks), columns), kTileThreads,
                 P::kSharedBytes, blocks, kernel, inner, blocks,
                 SourceOf(product.a, product.rows, product.inner, type),
                 SourceOf(product.b, product.columns, product.inner, type), TargetOf(product));
}

// Narrow results have narrow tiles.
template <class Number, bool kAcrossA, bool kAcrossB>
void LaunchTilesOfWidth(cudaStream_t stream, const MatrixProduct& product, DType type) {
  constexpr int kNarrow = 32;
  constexpr int kWide = 128;
  if (product.columns <= kNarrow) {
    LaunchTiles<TileProduct<Number, kAcrossA, kAcrossB, kNarrow>>(stream, product, type);
  } else {
    LaunchTiles<TileProduct<Number, kAcrossA, kAcrossB, kWide>>(stream, product, type);
  }
}

// The three forms that layers need: forward, gradient of the input, gradient of the weights.
template <class Number>
void LaunchTileProduct(cudaStream_t stream, const MatrixProduct& product, DType type) {
  if (product.a.lines_across) {
    LaunchTilesOfWidth<Number, true, true>(stream, product, type);
  } else if (product.b.lines_across) {
    LaunchTilesOfWidth<Number, false, true>(stream, product, type);
  } else {
    LaunchTilesOfWidth<Number, false, false>(stream, product, type);
  }
}

}  // namespace thimble::product
