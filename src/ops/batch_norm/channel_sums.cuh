// Sums per channel on a GPU: each block leaves two partial sums for each channel of its chunk, and
// each block of the next kernel adds up those of all chunks. Both in an order that depends on the
// shape alone, so that all blocks find the same bits.
#pragma once

#include "thimble/ops/batch_norm/channel_rows.cuh"

namespace thimble {

// The channels of a block's group, one for each thread from `first_thread` on; body(place,
// channel). Where two such loops need not wait for each other, they begin at different warps.
template <class Body>
__device__ void ForEachChannelOfGroup(const ChannelBlocks& blocks, int first_thread,
                                      const Body& body) {
  const int place = static_cast<int>(threadIdx.x) - first_thread;
  const int64_t channel = int64_t{blockIdx.x} * blocks.group_channels() + place;
  if (place < 0 || place >= blocks.group_channels()) return;
  if (channel < blocks.channels) body(place, channel);
}

template <int kVector>
struct ChannelSums {
  double sums[2][kVector] = {};
};

// Adds up what the threads of a warp have of each channel. Lanes of one column get the same bits.
template <int kVector>
__device__ void AddUpWarp(int columns, ChannelSums<kVector>& mine) {
  for (int distance = 16; distance >= columns; distance /= 2) {
#pragma unroll
    for (int which = 0; which < 2; ++which) {
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        mine.sums[which][v] += __shfl_xor_sync(0xffffffffU, mine.sums[which][v], distance);
      }
    }
  }
}

// Writes the sums over all threads of the block to `partials` (chunks, 2, C). All threads call it,
// those without elements with zeros.
template <int kVector>
__device__ void StorePartials(const ChannelBlocks& blocks, ChannelSums<kVector> mine,
                              double* partials) {
  constexpr int kWarps = kNormThreads / 32;
  __shared__ double of_warps[2][kMaxGroupChannels][kWarps + 1];  // no two columns in one bank
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  AddUpWarp(blocks.columns(), mine);
  if (lane < blocks.columns()) {
    for (int v = 0; v < kVector; ++v) {
      of_warps[0][lane * kVector + v][warp] = mine.sums[0][v];
      of_warps[1][lane * kVector + v][warp] = mine.sums[1][v];
    }
  }
  __syncthreads();
  ForEachChannelOfGroup(blocks, 0, [&](int place, int64_t channel) {
    double* partial = partials + int64_t{blockIdx.y} * 2 * blocks.channels + channel;
    double first = 0;
    double second = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      first += of_warps[0][place][w];
      second += of_warps[1][place][w];
    }
    partial[0] = first;
    partial[blocks.channels] = second;
  });
}

// The sums over all chunks for the block's group: first all first ones, then all second ones, in
// shared memory, at group_channels() each. All threads call it, once in a kernel.
inline __device__ const double* MergePartials(const ChannelBlocks& blocks, const double* partials) {
  __shared__ double sums[kNormThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const int width = blocks.group_channels();
  const int slots = 2 * width;
  const int slot = thread & (slots - 1);  // a power of two
  const int part = thread / slots;
  const int parts = kNormThreads / slots;
  const int64_t channel = int64_t{blockIdx.x} * width + (slot & (width - 1));
  double sum = 0;
  if (channel < blocks.channels) {
    const double* from = partials + (slot < width ? 0 : blocks.channels) + channel;
#pragma unroll 4
    for (int chunk = part; chunk < blocks.chunks; chunk += parts) {
      sum += from[int64_t{chunk} * 2 * blocks.channels];
    }
  }
  sums[thread] = sum;
  __syncthreads();
  for (int half = parts / 2; half > 0; half /= 2) {
    if (part < half) sums[thread] += sums[thread + half * slots];
    __syncthreads();
  }
  return sums;
}

}  // namespace thimble
