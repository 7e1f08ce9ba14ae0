// Sums per channel on a GPU: each block writes two partial sums per channel of its chunk, and each
// block of the next kernel adds up those of all chunks. Both orders depend on the shape alone, so
// that all blocks get the same bits.
#pragma once

#include "thimble/ops/batch_norm/channel_rows.cuh"

namespace thimble {

// The channels of a block's group, one for each thread from `first_thread` on; body(place,
// channel). Two independent loops start at different warps, so that they run at the same time.
template <class Body>
__device__ void ForEachChannelOfGroup(const ChannelBlocks& blocks, int first_thread,
                                      const Body& body) {
  const int place = static_cast<int>(threadIdx.x) - first_thread;
  const int64_t channel = int64_t{blockIdx.x} * blocks.group_channels() + place;
  if (place < 0 || place >= blocks.group_channels()) return;
  if (channel < blocks.channels) body(place, channel);
}

// The partial sums of one part, (chunks, 2, C), in those of all parts.
template <class Number>
__device__ Number* PartialsOf(const ChannelBlocks& blocks, int part, Number* partials) {
  return partials + int64_t{part} * blocks.chunks * 2 * blocks.channels;
}

template <int kVector>
struct ChannelSums {
  double sums[2][kVector] = {};
};

// The sums that a lane has after AddUpWarp, out of those of its column.
template <int kVector>
struct LaneSums {
  // With four channels, each of four lanes keeps a quarter.
  static constexpr int kCount = kVector == 4 ? 2 : 2 * kVector;
  static constexpr int kLanes = 2 * kVector / kCount;  // that share a column
  double sums[kCount];

  // Where the lanes of a column begin, and which sum is its first: which * kVector + v.
  __device__ static int Column(int lane) { return lane % (32 / kLanes); }
  __device__ static int First(int lane) { return lane / (32 / kLanes) * kCount; }
};

// Adds up the sums of each channel over the threads of a warp, as a tree. While a lane has many
// sums, it adds half of them and leaves the others to its partner, which halves the shuffles.
template <int kVector>
__device__ LaneSums<kVector> AddUpWarp(int columns, const ChannelSums<kVector>& mine) {
  constexpr int kCount = LaneSums<kVector>::kCount;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  double sums[2 * kVector];
#pragma unroll
  for (int i = 0; i < 2 * kVector; ++i) sums[i] = mine.sums[i / kVector][i % kVector];
  int distance = 16;
#pragma unroll
  for (int half = kVector; half >= kCount; half /= 2, distance /= 2) {
    const bool upper = (lane & distance) != 0;
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const double given = upper ? sums[i] : sums[i + half];
      const double kept = upper ? sums[i + half] : sums[i];
      sums[i] = kept + __shfl_xor_sync(0xffffffffU, given, distance);
    }
  }
  for (; distance >= columns; distance /= 2) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      sums[i] += __shfl_xor_sync(0xffffffffU, sums[i], distance);
    }
  }
  LaneSums<kVector> result;
#pragma unroll
  for (int i = 0; i < kCount; ++i) result.sums[i] = sums[i];
  return result;
}

// Writes the sums over all threads of the block to `partials` (parts, chunks, 2, C). Called by all
// threads; those without elements pass zeros.
template <int kVector>
__device__ void StorePartials(const ChannelBlocks& blocks, const ChannelSums<kVector>& mine,
                              double* partials) {
  constexpr int kWarps = kNormThreads / 32;
  __shared__ double of_warps[2][kMaxGroupChannels][kWarps + 1];  // no two columns in one bank
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  using Sums = LaneSums<kVector>;
  const Sums sums = AddUpWarp(blocks.columns(), mine);
  if (Sums::Column(lane) < blocks.columns()) {
#pragma unroll
    for (int i = 0; i < Sums::kCount; ++i) {
      const int index = Sums::First(lane) + i;
      of_warps[index / kVector][Sums::Column(lane) * kVector + index % kVector][warp] =
          sums.sums[i];
    }
  }
  __syncthreads();
  ForEachChannelOfGroup(blocks, 0, [&](int place, int64_t channel) {
    double* partial = PartialsOf(blocks, ThisPart(), partials) +
                      int64_t{blockIdx.y} * 2 * blocks.channels + channel;
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

// What a thread adds up for its block's group: the first or second sums of one channel, every
// `threads`-th of them starting with number `begin`.
struct MergeSlot {
  bool second;
  int64_t channel;  // C or more if there is nothing to add
  int begin;
  int threads;
};

inline __device__ MergeSlot SlotOfThisThread(const ChannelBlocks& blocks) {
  const int width = blocks.group_channels();
  const int slots = 2 * width;
  const int thread = static_cast<int>(threadIdx.x);
  const int slot = thread & (slots - 1);  // a power of two
  return {slot >= width, int64_t{blockIdx.x} * width + (slot & (width - 1)), thread / slots,
          kNormThreads / slots};
}

// Adds up the sums of the threads of each slot, as a tree: the second half is added to the first.
// The result, in shared memory, has group_channels() first sums, then as many second sums. Called
// by all threads, once per kernel.
inline __device__ const double* AddUpSlots(const ChannelBlocks& blocks, const MergeSlot& slot,
                                           double mine) {
  __shared__ double sums[kNormThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const int slots = 2 * blocks.group_channels();
  sums[thread] = mine;
  __syncthreads();
  // One thread adds the last levels of the tree, which takes less time than a barrier for each.
  constexpr int kLast = 8;
  static_assert(kNormThreads / (2 * kMaxGroupChannels) >= 2 * kLast);
  for (int half = slot.threads / 2; half > kLast; half /= 2) {
    if (slot.begin < half) sums[thread] += sums[thread + half * slots];
    __syncthreads();
  }
  if (slot.begin == 0) {
    double level[kLast];
#pragma unroll
    for (int i = 0; i < kLast; ++i) {
      level[i] = sums[thread + i * slots] + sums[thread + (i + kLast) * slots];
    }
#pragma unroll
    for (int half = kLast / 2; half > 0; half /= 2) {
#pragma unroll
      for (int i = 0; i < half; ++i) level[i] += level[i + half];
    }
    sums[thread] = level[0];
  }
  __syncthreads();
  return sums;
}

// The sums over all chunks of the block's part, as AddUpSlots returns them.
inline __device__ const double* MergePartials(const ChannelBlocks& blocks, const double* partials) {
  const MergeSlot slot = SlotOfThisThread(blocks);
  double sum = 0;
  if (slot.channel < blocks.channels) {
    const double* from = PartialsOf(blocks, ThisPart(), partials) +
                         (slot.second ? blocks.channels : 0) + slot.channel;
#pragma unroll 4
    for (int chunk = slot.begin; chunk < blocks.chunks; chunk += slot.threads) {
      sum += from[int64_t{chunk} * 2 * blocks.channels];
    }
  }
  return AddUpSlots(blocks, slot, sum);
}

}  // namespace thimble
