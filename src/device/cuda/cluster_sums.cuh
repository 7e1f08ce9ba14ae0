// Sums whose terms are divided among the blocks of a cluster.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/device/cuda/cluster.cuh"

namespace thimble {

// Adds up four neighbouring sums of a cluster's blocks, in order. Neighbouring threads should take
// neighbouring places: other blocks' shared memory is slow. All loads are on their way at once.
__device__ inline void AddUpFour(const float* place, int blocks, float (&four)[4]) {
  if (blocks == 1) {
    const float4 own = *reinterpret_cast<const float4*>(place);
    four[0] = own.x;
    four[1] = own.y;
    four[2] = own.z;
    four[3] = own.w;
    return;
  }
  float4 loaded[kMaxClusterBlocks];
#pragma unroll
  for (int block = 0; block < kMaxClusterBlocks; ++block) {
    loaded[block] = make_float4(0, 0, 0, 0);
    if (block < blocks) loaded[block] = LoadFromClusterBlock(place, block);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) four[i] = 0;
#pragma unroll
  for (int block = 0; block < kMaxClusterBlocks; ++block) {
    four[0] += loaded[block].x;
    four[1] += loaded[block].y;
    four[2] += loaded[block].z;
    four[3] += loaded[block].w;
  }
}

// Parts that a block of `blocks` takes: ranges whose sizes differ by at most one.
struct PartRange {
  int first, count;
};
__device__ inline PartRange PartsOf(int block, int blocks, int parts) {
  const int first = static_cast<int>(int64_t{block} * parts / blocks);
  return {first, static_cast<int>(int64_t{block + 1} * parts / blocks) - first};
}

}  // namespace thimble
