// How a thread of a GPU reads and writes its elements of a matrix of rows and channels.
#pragma once

#include <cuda_runtime.h>

#include "thimble/ops/batch_norm/channel_blocks.h"

namespace thimble {

// Channels that are read and written at once.
template <int kVector>
struct alignas(kVector * sizeof(float)) Pack {
  float at[kVector];
};

template <int kVector>
__device__ Pack<kVector> Load(const float* from) {
  return *reinterpret_cast<const Pack<kVector>*>(from);
}

template <int kVector>
__device__ void Store(float* to, const Pack<kVector>& pack) {
  *reinterpret_cast<Pack<kVector>*>(to) = pack;
}

// Blocks of a grid: (groups of channels, chunks of a part, parts).
inline dim3 GridOf(const ChannelBlocks& blocks) {
  return {static_cast<unsigned>(blocks.groups), static_cast<unsigned>(blocks.chunks),
          static_cast<unsigned>(blocks.parts)};
}

inline __device__ int ThisPart() { return static_cast<int>(blockIdx.z); }

// The index in arrays (parts, C) of a channel's statistic for this block's part.
inline __device__ int64_t StatisticOfThisPart(const ChannelBlocks& blocks, int64_t channel) {
  return ThisPart() * blocks.channels + channel;
}

inline __device__ ThreadRows RowsOfThisThread(const ChannelBlocks& blocks) {
  return RowsOfThread(blocks, ThisPart(), static_cast<int>(blockIdx.x),
                      static_cast<int>(blockIdx.y), static_cast<int>(threadIdx.x));
}

// Several rows of a thread, loaded before the first of them is processed. Kernels read the first
// batch before they prepare their constants, which takes about as long.
template <int kVector, int kRows>
struct RowBatch {
  Pack<kVector> at[kRows];

  // Reads the thread's rows from `row` on, as many as there are.
  __device__ void Read(const ThreadRows& rows, int row, const float* from) {
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      if (row + k < rows.count) at[k] = Load<kVector>(from + rows.Element(row + k));
    }
  }
};

}  // namespace thimble
