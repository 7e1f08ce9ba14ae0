// Sums and maxima over the lanes of a warp, as fixed trees: all lanes get the same bits. All lanes
// call them.
#pragma once

#include <cuda_runtime.h>

namespace thimble {

inline constexpr int kWarpLanes = 32;

template <class Number>
__device__ Number WarpSum(Number mine) {
#pragma unroll
  for (int distance = kWarpLanes / 2; distance > 0; distance /= 2) {
    mine += __shfl_xor_sync(0xFFFFFFFFU, mine, distance);
  }
  return mine;
}

// NaN is passed over unless all are NaN.
__device__ inline float WarpMax(float mine) {
#pragma unroll
  for (int distance = kWarpLanes / 2; distance > 0; distance /= 2) {
    mine = fmaxf(mine, __shfl_xor_sync(0xFFFFFFFFU, mine, distance));
  }
  return mine;
}

}  // namespace thimble
