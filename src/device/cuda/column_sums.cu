#include <cuda_runtime.h>

#include <type_traits>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/cluster.cuh"
#include "thimble/device/cuda/column_sums.h"
#include "thimble/device/cuda/elements.cuh"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/device/cuda/warp.cuh"

namespace thimble {
namespace {

// A block has few columns, so that there are enough blocks: 64 bytes of each row of 16-bit numbers.
constexpr int kSummedColumns = kWarpLanes;
constexpr int kColumnWarps = 16;
// Rows that a thread loads before it adds the first.
constexpr int kSummedAtOnce = 4;

// Rows that a block loads at once: a thread takes kWidth neighbouring columns, a warp kWidth rows.
template <int kWidth>
constexpr int kSummedRows = kColumnWarps* kWidth;

// The sums of a thread's columns over its rows: begin + own and those kSummedRows apart from it, up
// to `end`. Called by all lanes of a warp.
template <class Storage, int kWidth>
__device__ void SumColumns(const Storage* x, int64_t begin, int64_t end, int own, int64_t columns,
                           double (&sums)[kWidth]) {
  using Part = std::conditional_t<kWidth == 1, Pack<float, 1>, Pack<Storage, kWidth>>;
  constexpr int kRows = kSummedAtOnce * kSummedRows<kWidth>;
  for (; begin < end; begin += kRows) {
    const Storage* from = x + begin * columns;
    const auto count = static_cast<int>(min(end - begin, int64_t{kRows}));
    Part parts[kSummedAtOnce];
#pragma unroll
    for (int k = 0; k < kSummedAtOnce; ++k) {
      // Beyond the end any row: loads without conditions are all on their way at once.
      const int row = min(own + k * kSummedRows<kWidth>, count - 1);
      if constexpr (kWidth == 1) {
        parts[k].words.at[0] = LoadNumber(from + row * columns);
      } else {
        parts[k] = LoadPack<kWidth>(from + row * columns);
      }
    }
    // Without it the compiler waits for each load before the next one.
    __syncwarp();
#pragma unroll
    for (int k = 0; k < kSummedAtOnce; ++k) {
      if (own + k * kSummedRows<kWidth> >= count) parts[k] = {};
#pragma unroll
      for (int c = 0; c < kWidth; ++c) sums[c] += parts[k][c];
    }
  }
}

// Adds up the sums of the lanes with the same columns, those whose number is the same modulo
// kWarpLanes / kWidth. Each lane keeps one column: the one with the number of its row.
template <int kWidth>
__device__ double SumOfWarp(double (&sums)[kWidth]) {
  constexpr int kAcross = kWarpLanes / kWidth;
  const int row = static_cast<int>(threadIdx.x) % kWarpLanes / kAcross;
#pragma unroll
  for (int half = kWidth / 2; half > 0; half /= 2) {
    const bool upper = (row & half) != 0;
#pragma unroll
    for (int c = 0; c < half; ++c) {
      const double sent = upper ? sums[c] : sums[c + half];
      const double kept = upper ? sums[c + half] : sums[c];
      sums[c] = kept + __shfl_xor_sync(0xFFFFFFFFU, sent, half * kAcross);
    }
  }
  return sums[0];
}

// Adds up what the blocks of a cluster have at the same place, in order.
__device__ double SumOfCluster(const double* place, int cluster_blocks) {
  double loaded[kMaxClusterBlocks];
#pragma unroll
  for (int block = 0; block < kMaxClusterBlocks; ++block) {
    loaded[block] = block < cluster_blocks ? LoadFromClusterBlock(place, block) : 0;
  }
  double sum = 0;
#pragma unroll
  for (int block = 0; block < kMaxClusterBlocks; ++block) sum += loaded[block];
  return sum;
}

template <class Storage>
struct SummedMatrix {
  const Storage* x;
  OutNumbers<AnyNumber> sums;
};

// In doubles: batches of tokens have thousands of rows. The blocks of a cluster have the same
// columns, and block_rows of the rows each.
template <class Storage, int kWidth>
__global__ void __launch_bounds__(kColumnWarps* kWarpLanes)
    ColumnSumsKernel(int64_t rows, int64_t columns, int cluster_blocks, int64_t block_rows,
                     SummedMatrix<Storage> first, SummedMatrix<Storage> second) {
  __shared__ double warp_sums[kColumnWarps][kSummedColumns];
  __shared__ double block_sums[kSummedColumns];
  constexpr int kAcross = kWarpLanes / kWidth;
  const Storage* x = blockIdx.y == 0 ? first.x : second.x;
  const int rank = static_cast<int>(blockIdx.x) % cluster_blocks;
  const int64_t first_column =
      int64_t{static_cast<int>(blockIdx.x) / cluster_blocks} * kSummedColumns;
  const int warp = static_cast<int>(threadIdx.x) / kWarpLanes;
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  WaitForKernelsBefore();
  double sums[kWidth] = {};
  // Beyond the last column any other one.
  const int64_t own_column = first_column + lane % kAcross * kWidth;
  SumColumns(x + (own_column < columns ? own_column : first_column), rank * block_rows,
             min((rank + 1) * block_rows, rows), warp * kWidth + lane / kAcross, columns, sums);
  warp_sums[warp][lane % kAcross * kWidth + lane / kAcross] = SumOfWarp(sums);
  __syncthreads();
  double sum = 0;
  if (warp == 0) {
#pragma unroll
    for (int w = 0; w < kColumnWarps; ++w) sum += warp_sums[w][lane];
  }
  if (cluster_blocks > 1) {
    if (warp == 0) block_sums[lane] = sum;
    SyncCluster();
    if (warp == 0 && rank == 0) {
      sum = SumOfCluster(&block_sums[lane], cluster_blocks);
    }
    SyncCluster();  // until here others read this block's sums
  }
  const int64_t column = first_column + lane;
  if (warp == 0 && rank == 0 && column < columns) {
    const AnyPointer<void> to = blockIdx.y == 0 ? first.sums : second.sums;
    StoreNumber(static_cast<float>(sum), to + column);
  }
}

template <class Storage, int kWidth>
void LaunchSums(cudaStream_t stream, int64_t rows, int64_t columns,
                std::span<const ColumnSums> matrices) {
  int cluster_blocks = 1;
  while (HasClusters() && cluster_blocks < kMaxClusterBlocks &&
         cluster_blocks * kSummedAtOnce * kSummedRows<kWidth> < rows) {
    cluster_blocks *= 2;
  }
  const int64_t block_rows = (rows + cluster_blocks - 1) / cluster_blocks;
  const auto tiles = static_cast<unsigned>((columns - 1) / kSummedColumns + 1);
  const auto matrix = [](const ColumnSums& sums) {
    return SummedMatrix<Storage>{As<Storage>(sums.x), sums.sums};
  };
  LaunchClusters(
      stream,
      dim3(tiles * static_cast<unsigned>(cluster_blocks), static_cast<unsigned>(matrices.size())),
      kColumnWarps * kWarpLanes, 0, cluster_blocks, &ColumnSumsKernel<Storage, kWidth>, rows,
      columns, cluster_blocks, block_rows, matrix(matrices.front()), matrix(matrices.back()));
}

}  // namespace

void LaunchColumnSums(cudaStream_t stream, int64_t rows, int64_t columns,
                      std::span<const ColumnSums> matrices) {
  if (columns == 0) return;
  WithStorage(matrices.front().x.type, [&](auto type) {
    using Storage = decltype(type);
    constexpr int kWidth = 16 / sizeof(Storage);
    const bool whole =
        columns % kWidth == 0 && AllAligned16(matrices.front().x.data, matrices.back().x.data);
    whole ? LaunchSums<Storage, kWidth>(stream, rows, columns, matrices)
          : LaunchSums<Storage, 1>(stream, rows, columns, matrices);
  });
}

}  // namespace thimble
