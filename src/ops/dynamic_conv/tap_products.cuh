// The products of rows of dy with the rows of x that their taps read, which are the derivatives by
// the weights of the taps: the band of a product of matrices.
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

#include "thimble/device/cuda/numbers.cuh"
#include "thimble/device/cuda/tensor_core.cuh"
#include "thimble/device/cuda/warp.cuh"

namespace thimble {

// Rows of dy, and those of x; row s of x is tap s - t + shift of row t of dy, if there is such a
// tap.
struct TapProducts {
  int rows, sources, shift, taps;
  bool adds;        // to what is there
  float* products;  // in shared memory, rows `pitch` floats apart
  int pitch;

  __device__ void Store(int t, int s, float product) const {
    const int k = s - t + shift;
    if (t >= rows || s >= sources || k < 0 || k >= taps) return;
    float* to = products + t * pitch + k;
    *to = adds ? *to + product : product;
  }
  // Tiles of kSize rows by kSize sources; those of neighbouring rows begin with the first source
  // that the first of these reads.
  template <int kSize>
  __device__ int TilesOfRows() const {
    return (min(sources, taps + kSize - 1) + kSize - 1) / kSize;
  }
  template <int kSize>
  __device__ int Tiles() const {
    return (rows + kSize - 1) / kSize * TilesOfRows<kSize>();
  }
};

template <int kSize>
struct TapTile {
  int row, source;
  bool needed;

  __device__ TapTile(const TapProducts& all, int index)
      : row(index / all.TilesOfRows<kSize>() * kSize),
        source(max(0, row - all.shift) + index % all.TilesOfRows<kSize>() * kSize),
        needed(row < all.rows && source < all.sources &&
               source <= row + kSize - 1 + all.taps - 1 - all.shift) {}
};

// With numbers of 16 bits on tensor cores: a warp has 16 rows by 16 sources. `dy` and `x` are rows
// in shared memory, of which the first `channels` numbers are multiplied: a multiple of 16.
template <class Short>
__device__ void MultiplyTapRows(const Short* dy, const Short* x, int pitch, int channels,
                                const TapProducts& all) {
  constexpr int kSize = 16;
  constexpr int kNumbersOfWord = 2;
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  const int warps = static_cast<int>(blockDim.x) / kWarpLanes;
  for (int i = static_cast<int>(threadIdx.x) / kWarpLanes; i < all.Tiles<kSize>(); i += warps) {
    const TapTile<kSize> tile(all, i);
    if (!tile.needed) continue;
    // Rows that do not exist are replaced by others: their products are not stored.
    const int dy_row = min(tile.row + RowOfLaneA(lane), all.rows - 1);
    const int x_row = min(tile.source + RowOfLaneB(lane), all.sources - 1);
    const Short* of_dy = dy + dy_row * pitch + ColumnOfLaneA(lane) * kNumbersOfWord;
    const Short* of_x = x + x_row * pitch + ColumnOfLaneB(lane) * kNumbersOfWord;
    float sums[2][4] = {};
#pragma unroll 2
    for (int c = 0; c < channels; c += kSize) {
      TensorCoreA a;
      TensorCoreB b[2];
      LoadA(SharedAddress(of_dy + c), a);
      LoadTwoB(SharedAddress(of_x + c), b[0], b[1]);
      MultiplyAdd<Short>(a, b[0], sums[0]);
      MultiplyAdd<Short>(a, b[1], sums[1]);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        all.Store(tile.row + lane / 4 + j / 2 * 8, tile.source + half * 8 + lane % 4 * 2 + j % 2,
                  sums[half][j]);
      }
    }
  }
}

// In floats: four threads have 4 rows by 4 sources, each a quarter of the channels.
__device__ inline void MultiplyTapRows(const float* dy, const float* x, int pitch, int channels,
                                       const TapProducts& all) {
  constexpr int kSize = 4;
  constexpr int kThreads = 4;
  constexpr int kTilesOfWarp = kWarpLanes / kThreads;
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  const int part = lane % kThreads;
  const int step = static_cast<int>(blockDim.x) / kThreads;
  const int tiles = all.Tiles<kSize>();
  for (int i = static_cast<int>(threadIdx.x) / kWarpLanes * kTilesOfWarp; i < tiles; i += step) {
    const TapTile<kSize> tile(all, i + lane / kThreads);
    float sums[kSize][kSize] = {};
    if (tile.needed) {
      // Rows that do not exist are replaced by others: their products are not stored.
      const float* of_dy[kSize];
      const float* of_x[kSize];
#pragma unroll
      for (int j = 0; j < kSize; ++j) {
        of_dy[j] = dy + min(tile.row + j, all.rows - 1) * pitch;
        of_x[j] = x + min(tile.source + j, all.sources - 1) * pitch;
      }
#pragma unroll 1
      for (int c = 4 * part; c < channels; c += 4 * kThreads) {
        float4 b[kSize];
#pragma unroll
        for (int s = 0; s < kSize; ++s) b[s] = LoadFour(of_x[s] + c);
#pragma unroll
        for (int t = 0; t < kSize; ++t) {
          const float4 a = LoadFour(of_dy[t] + c);
#pragma unroll
          for (int s = 0; s < kSize; ++s) {
            sums[t][s] = fmaf(a.x, b[s].x, sums[t][s]);
            sums[t][s] = fmaf(a.y, b[s].y, sums[t][s]);
            sums[t][s] = fmaf(a.z, b[s].z, sums[t][s]);
            sums[t][s] = fmaf(a.w, b[s].w, sums[t][s]);
          }
        }
      }
    }
    // Each of the four adds up a row.
#pragma unroll
    for (int t = 0; t < kSize; ++t) {
#pragma unroll
      for (int s = 0; s < kSize; ++s) {
        float sum = sums[t][s];
        sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 1);
        sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 2);
        if (tile.needed && part == t) all.Store(tile.row + t, tile.source + s, sum);
      }
    }
  }
}

}  // namespace thimble
