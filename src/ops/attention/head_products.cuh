// Products of the rows of a head on tensor cores, as exact as in fp32. A warp has a strip, 16 rows
// of one factor, and goes through the other one a tile of 32 rows at a time.
//
// Numbers of 16 bits are multiplied as they are: their products are exact in fp32. Those of 32
// bits, and all weights, are cut into two numbers of TF32, which together have all bits but the
// last; the product of two lower parts is left out. Tensor cores cut sums off instead of rounding
// them, so that long chains would drift towards zero: only a few products are added up there, and
// their sums outside.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "thimble/device/cuda/numbers.cuh"
#include "thimble/device/cuda/tensor_core.cuh"
#include "thimble/device/cuda/warp.cuh"

namespace thimble::heads {

inline constexpr int kStripRows = 16;
inline constexpr int kTileRows = 32;
// Channels that are multiplied at once.
inline constexpr int kGroupChannels = 32;
// Channels of a warp's sums: those of a wider head have several warps.
inline constexpr int kPartChannels = 64;

__device__ inline int LaneOfWarp() { return static_cast<int>(threadIdx.x) % kWarpLanes; }

// What a lane has of a matrix: [i][j] is row RowOfLane(j), column 8 * i + ColumnOfLane(j).
using TileNumbers = float[kTileRows / 8][4];
using PartNumbers = float[kPartChannels / 8][4];
__device__ inline int RowOfLane(int j) { return LaneOfWarp() / 4 + j / 2 * 8; }
__device__ inline int ColumnOfLane(int j) { return LaneOfWarp() % 4 * 2 + j % 2; }

// The sum or maximum over the lanes that share a row, in all of them.
__device__ inline float RowSum(float mine) {
  mine += __shfl_xor_sync(0xFFFFFFFFU, mine, 1);
  return mine + __shfl_xor_sync(0xFFFFFFFFU, mine, 2);
}
// NaN is passed over unless all are NaN.
__device__ inline float RowMax(float mine) {
  mine = fmaxf(mine, __shfl_xor_sync(0xFFFFFFFFU, mine, 1));
  return fmaxf(mine, __shfl_xor_sync(0xFFFFFFFFU, mine, 2));
}

// x = high + low up to a unit of its last bit, as tensor cores read them. If x is infinite, the
// lower part is NaN.
struct TwoTf32 {
  uint32_t high, low;

  __device__ explicit TwoTf32(float x) {
    constexpr uint32_t kBitsRead = 0xFFFFE000U;
    high = __float_as_uint(RoundToTf32(x)) & kBitsRead;
    low = __float_as_uint(x - __uint_as_float(high));
  }
};
template <class Block>
struct TwoBlocks {
  Block high, low;

  __device__ void Set(int i, float x) {
    const TwoTf32 two(x);
    high.values[i] = two.high;
    low.values[i] = two.low;
  }
};
template <class Block>
__device__ TwoBlocks<Block> CutInTwo(const Block& floats) {
  TwoBlocks<Block> two;
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(Block) / sizeof(uint32_t)); ++i) {
    two.Set(i, __uint_as_float(floats.values[i]));
  }
  return two;
}

__device__ inline void AddFour(const float (&from)[4], float (&to)[4]) {
#pragma unroll
  for (int j = 0; j < 4; ++j) to[j] += from[j];
}

// Which factor's lower part is multiplied first. Products that exchange their factors give the same
// bits if they also exchange this.
enum class LowerFirst { kOfA, kOfB };

// Adds the smallest products first.
template <LowerFirst kFirst = LowerFirst::kOfA>
__device__ inline void MultiplyAddTwo(const TwoBlocks<TensorCoreA>& a,
                                      const TwoBlocks<TensorCoreB>& b, float (&sums)[4]) {
  if constexpr (kFirst == LowerFirst::kOfA) MultiplyAdd<float>(a.low, b.high, sums);
  MultiplyAdd<float>(a.high, b.low, sums);
  if constexpr (kFirst == LowerFirst::kOfB) MultiplyAdd<float>(a.low, b.high, sums);
  MultiplyAdd<float>(a.high, b.high, sums);
}

// products = strip (16, inner) * the transpose of tile (32, inner), in shared memory. `stride` is
// that of their rows; both addresses are multiples of 16 bytes, `inner` of kGroupChannels.
template <LowerFirst kFirst, class Number>
__device__ void MultiplyRows(const Number* strip, const Number* tile, int stride, int inner,
                             TileNumbers& products) {
  constexpr bool kIsFloat = std::is_same_v<Number, float>;
  constexpr int kOfWord = sizeof(uint32_t) / sizeof(Number);
  constexpr int kStepBytes = 8 * sizeof(uint32_t);  // of the inner dimension of a product
  // Of the products that tensor cores add up.
  constexpr int kGroupBytes = kIsFloat ? kStepBytes : 2 * kStepBytes;
  const int lane = LaneOfWarp();
  uint32_t at_a = SharedAddress(strip + RowOfLaneA(lane) * stride + ColumnOfLaneA(lane) * kOfWord);
  uint32_t at_b = SharedAddress(tile + RowOfLaneB(lane) * stride + ColumnOfLaneB(lane) * kOfWord);
  const uint32_t next_b = 16 * stride * sizeof(Number);
  const uint32_t end = at_a + inner * sizeof(Number);
#pragma unroll
  for (auto& of_columns : products) {
#pragma unroll
    for (float& product : of_columns) product = 0;
  }
#pragma unroll 1
  for (; at_a != end; at_a += kGroupBytes, at_b += kGroupBytes) {
    TileNumbers sums = {};
#pragma unroll
    for (int step = 0; step < kGroupBytes; step += kStepBytes) {
      TensorCoreA a;
      TensorCoreB b[4];
      LoadA(at_a + step, a);
      LoadTwoB(at_b + step, b[0], b[1]);
      LoadTwoB(at_b + step + next_b, b[2], b[3]);
      if constexpr (kIsFloat) {
        const auto two = CutInTwo(a);
#pragma unroll
        for (int i = 0; i < 4; ++i) MultiplyAddTwo<kFirst>(two, CutInTwo(b[i]), sums[i]);
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) MultiplyAdd<Number>(a, b[i], sums[i]);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) AddFour(sums[i], products[i]);
  }
  __syncwarp();  // what is loaded next takes no registers before
}

// Whether sums are those before, or nothing yet.
enum class Sums { kBefore, kNone };

// Lets sums begin. Adding a number to -0 gives the bits of that number, so that this is as good as
// kNone, which takes fewer registers.
__device__ inline void BeginSums(PartNumbers& sums) {
#pragma unroll
  for (auto& of_columns : sums) {
#pragma unroll
    for (float& sum : of_columns) sum = -0.0F;
  }
}

// Adds weights (16, 32) times a tile (32, 64) in shared memory, of which `columns` exist, to sums,
// which are multiplied by the factors of their rows before. The columns of weights are taken in
// another order, so that a lane multiplies what it has: 8 * i + 2 * t and the next one are t and
// t + 4 of the inner dimension. Takes sixteen rows at a time, for which the parts of the weights
// fit in registers.
template <Sums kSums, class Number>
__device__ void AddWeighedRows(const TileNumbers& weights, const Number* tile, int stride,
                               const float (&factors)[2], int columns, PartNumbers& sums) {
  const int lane = LaneOfWarp();
  // Also those of columns that do not exist.
  if constexpr (kSums == Sums::kNone) BeginSums(sums);
#pragma unroll
  for (int first = 0; first < kTileRows / 8; first += 2) {
    TwoBlocks<TensorCoreA> a[2];
#pragma unroll
    for (int p = 0; p < 2; ++p) {
      const float(&of_lane)[4] = weights[first + p];
      a[p].Set(0, of_lane[0]);
      a[p].Set(1, of_lane[2]);
      a[p].Set(2, of_lane[1]);
      a[p].Set(3, of_lane[3]);
    }
#pragma unroll
    for (int i = 0; i < kPartChannels / 8; i += 2) {
      // Also keeps the compiler from beginning all products before it adds the first ones.
      if (8 * i >= columns) continue;
      float more[2][4] = {};
      if constexpr (std::is_same_v<Number, float>) {
#pragma unroll
        for (int p = 0; p < 2; ++p) {
          const float* at = tile + (8 * (first + p) + lane % 4 * 2) * stride + 8 * i + lane / 4;
#pragma unroll
          for (int n = 0; n < 2; ++n) {
            TwoBlocks<TensorCoreB> b;
            b.Set(0, at[8 * n]);
            b.Set(1, at[8 * n + stride]);
            float of_rows[4] = {};
            MultiplyAddTwo(a[p], b, of_rows);
            AddFour(of_rows, more[n]);
          }
        }
      } else {
        uint32_t pairs[4];  // of rows, in blocks of eight rows, then of eight columns
        LoadTransposed(
            SharedAddress(tile + (8 * first + lane % 16) * stride + 8 * i + lane / 16 * 8), pairs);
        TensorCoreB b[4];
#pragma unroll
        for (int block = 0; block < 4; ++block) {
          const float2 two = DecodeTwo<Number>(pairs[block]);
          b[block] = {{__float_as_uint(two.x), __float_as_uint(two.y)}};
        }
#pragma unroll
        for (int block = 0; block < 4; ++block) {
          MultiplyAdd<float>(a[block % 2].low, b[block], more[block / 2]);
        }
#pragma unroll
        for (int block = 0; block < 4; ++block) {
          MultiplyAdd<float>(a[block % 2].high, b[block], more[block / 2]);
        }
      }
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        float(&to)[4] = sums[i + n];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          if (first > 0) {
            to[j] += more[n][j];
          } else if constexpr (kSums == Sums::kNone) {
            to[j] = more[n][j];
          } else {
            to[j] = fmaf(to[j], factors[j / 2], more[n][j]);
          }
        }
      }
    }
  }
}

}  // namespace thimble::heads
