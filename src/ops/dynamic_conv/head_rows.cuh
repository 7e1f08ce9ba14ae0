// What a block of dynamic_conv works on: a head of a sentence, of which rows of some channels are
// in shared memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "thimble/device/cuda/async_copy.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/device/cuda/warp.cuh"
#include "thimble/ops/dynamic_conv/sizes.h"

namespace thimble {

// DynamicConvSizes as GPU code takes them.
struct TapSizes {
  int positions, channels, heads, taps, before, head_channels;
  int64_t batch;

  explicit TapSizes(const DynamicConvSizes& sizes)
      : positions(static_cast<int>(sizes.positions)),
        channels(static_cast<int>(sizes.channels)),
        heads(static_cast<int>(sizes.heads)),
        taps(static_cast<int>(sizes.taps)),
        before(static_cast<int>(sizes.before)),
        head_channels(static_cast<int>(sizes.head_channels())),
        batch(sizes.batch) {}

  __host__ __device__ int after() const { return taps - 1 - before; }
  // The index of a row of taps: one for each position and head.
  __device__ int64_t Row(int64_t b, int t, int h) const { return (b * positions + t) * heads + h; }
  __device__ int64_t Channel(int64_t b, int t, int h) const {
    return (b * positions + t) * channels + h * head_channels;
  }
  // The index of a row's first weight within its sample.
  __device__ uint64_t Drawn(int t, int h) const {
    return (uint64_t{static_cast<uint32_t>(t)} * static_cast<uint32_t>(heads) +
            static_cast<uint32_t>(h)) *
           static_cast<uint32_t>(taps);
  }
};

struct SentenceHead {
  int b, h;
  bool valid;  // whether the length is in range
  int length;  // real positions: none if it is not

  __device__ SentenceHead(const TapSizes& sizes, const int32_t* lengths, int the_b, int the_h)
      : b(the_b), h(the_h) {
    const int given = lengths[b];
    valid = given >= 0 && given <= sizes.positions;
    length = valid ? given : 0;
  }
  // What outputs hold at other positions.
  __device__ float Padding() const { return valid ? 0.0F : nanf(""); }
};

// Threads of a block as rows of a power of two of them.
struct ThreadGrid {
  int row, column;  // of this thread
  int rows;

  __device__ explicit ThreadGrid(int columns) {
    const int bits = __ffs(columns) - 1;
    row = static_cast<int>(threadIdx.x) >> bits;
    column = static_cast<int>(threadIdx.x) & (columns - 1);
    rows = static_cast<int>(blockDim.x) >> bits;
  }
};

// ---- Rows in shared memory

// Numbers are there as they are stored, or as floats if the type is not known.
template <class Storage>
using RowElement = std::conditional_t<std::is_same_v<Storage, AnyNumber>, float, Storage>;

// Rows are as many channels long as a chunk has, a power of two in this range: the smallest is what
// tensor cores multiply at once.
constexpr int kLeastChunk = 16;
constexpr int kMostChunk = 128;
// Rows are 16 bytes apart, so that neighbouring ones begin in other banks.
constexpr int kRowGapBytes = 16;

template <class Element>
__host__ __device__ constexpr int RowPitch(int chunk) {
  return chunk + kRowGapBytes / static_cast<int>(sizeof(Element));
}

// As many channels as a head has, or the most.
inline int ChunkFor(int head_channels) {
  int chunk = kLeastChunk;
  while (chunk < kMostChunk && chunk < head_channels) chunk *= 2;
  return chunk;
}

// A chunk of a head's channels.
struct ChannelChunk {
  int width;
  int first;     // within the head
  int existing;  // channels of the head from there on

  __device__ ChannelChunk(const TapSizes& sizes, int the_width, int index)
      : width(the_width), first(index * width), existing(sizes.head_channels - first) {}
};

// Starts to copy `count` rows, which are `stride` numbers apart in memory; channels that do not
// exist become zero. `aligned`: each row of a head begins and ends at multiples of 16 bytes.
template <class Storage>
__device__ void StageRows(InNumbers<Storage> from, int stride, const ChannelChunk& chunk, int count,
                          bool aligned, RowElement<Storage>* to) {
  const int pitch = RowPitch<RowElement<Storage>>(chunk.width);
  if constexpr (!std::is_same_v<Storage, AnyNumber>) {
    if (aligned) {
      constexpr int kNumbers = kCopiedBytes / static_cast<int>(sizeof(Storage));
      const ThreadGrid threads(chunk.width / kNumbers);
      const int c = threads.column * kNumbers;
      for (int row = threads.row; row < count; row += threads.rows) {
        CopyGroupAsync(to + row * pitch + c, from + (row * stride + c), c < chunk.existing);
      }
      return;
    }
  }
  const ThreadGrid threads(min(chunk.width, kWarpLanes));
#pragma unroll 1
  for (int row = threads.row; row < count; row += threads.rows) {
#pragma unroll 4
    for (int c = threads.column; c < chunk.width; c += kWarpLanes) {
      const float number = c < chunk.existing ? LoadNumber(from + (row * stride + c)) : 0.0F;
      StoreNumber(number, to + row * pitch + c);
    }
  }
}

}  // namespace thimble
