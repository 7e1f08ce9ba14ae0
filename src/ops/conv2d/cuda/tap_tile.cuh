// Tiles of a TapConvolution: what a block works on, its layout in shared memory, and the
// synchronization between the threads that copy and those that multiply.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "thimble/device/cuda/handover.cuh"
#include "thimble/ops/conv2d/cuda/image_tile.cuh"
#include "thimble/ops/conv2d/cuda/tap_convolution.h"

namespace thimble::tap {

// Words between neighbouring pixels in shared memory: eight rows of four words are then in
// different banks.
inline constexpr int kPitch = kWordsPerPart + 4;
inline constexpr int kMaxSlots = 4;

// Layout of the weights, in global and shared memory: weights of neighbouring source or of
// neighbouring result channels are adjacent.
enum class Weights { kSourceInner, kResultInner };

// The kind of taps: any, or a window of three by three with a step of one, for which registers keep
// a line of source pixels for three rows of taps.
enum class Taps { kAny, kWindow };
inline constexpr int kWindow = 3;

// A pixel of a tile: its image and its position there.
struct TilePixel {
  int image, row, column;
};

// kWarpsM by kWarpsN warps multiply and kCopiers threads copy. Factors of 16 bits are copied
// without passing registers, which takes fewer threads.
template <Math kMath_, int kImages_, int kRows_, int kColumns_, int kChannels_, int kWarpsM_,
          int kWarpsN_, int kCopiers_ = 32 * kWarpsM_* kWarpsN_>
struct Tile {
  static constexpr Math kMath = kMath_;
  using Number = Factor<kMath>;
  static constexpr bool kShort = IsShort(kMath);
  static constexpr int kNumbersPerWord = kShort ? 2 : 1;
  static constexpr int kPartChannels = kWordsPerPart * kNumbersPerWord;  // of the source
  static constexpr int kImages = kImages_;
  static constexpr int kRows = kRows_;  // positions of each image
  static constexpr int kColumns = kColumns_;
  static constexpr int kPixels = kImages * kRows * kColumns;
  static constexpr int kChannels = kChannels_;  // of the result
  static constexpr int kWarpsN = kWarpsN_;
  static constexpr int kThreads = 32 * kWarpsM_ * kWarpsN_;  // that multiply
  static constexpr int kCopiers = kCopiers_;
  static constexpr int kWarpPixels = kPixels / kWarpsM_;
  static constexpr int kWarpChannels = kChannels / kWarpsN_;
  static constexpr int kBlocksM = kWarpPixels / 16;
  static constexpr int kBlocksN = kWarpChannels / 8;
  static_assert(kBlocksN % 2 == 0 && kWarpPixels % 16 == 0);
  // A block of 16 pixels is a line of one image or the same line of two; the next block is the next
  // line, and a warp's lines are neighbours.
  static constexpr int kImagesAbreast = 16 / kColumns;
  static_assert(16 % kColumns == 0 && kColumns % 8 == 0 && kImages % kImagesAbreast == 0);
  static_assert(kRows % kBlocksM == 0);

  __device__ static TilePixel PixelAt(int index) {
    const int line = index / 16;
    return {line / kRows * kImagesAbreast + index % 16 / kColumns, line % kRows, index % kColumns};
  }
};

// Index of a thread among those that copy.
template <class T>
__device__ int Copier() {
  return static_cast<int>(threadIdx.x) - T::kThreads;
}
// Index of a warp among those that multiply.
__device__ inline int Multiplier() { return static_cast<int>(threadIdx.x) / 32; }

// A barrier for the threads of one role.
inline constexpr int kRoleBarrier = 1;  // 0 is __syncthreads

template <class T>
__device__ void SyncCopiers() {
  asm volatile("bar.sync %0, %1;" ::"n"(kRoleBarrier), "n"(T::kCopiers) : "memory");
}

// Barriers with which copying and multiplying threads pass slots to each other.
struct Handovers {
  Handover full[kMaxSlots], empty[kMaxSlots];

  // Called by all threads of a block.
  template <class T>
  __device__ void Make() {
    if (threadIdx.x == 0) {
      for (int slot = 0; slot < kMaxSlots; ++slot) {
        full[slot].Make(T::kCopiers);
        empty[slot].Make(T::kThreads);
      }
    }
    __syncthreads();
  }
};

template <class T>
__host__ __device__ TileArea AreaOf(const TapConvolution& c) {
  return {(T::kRows - 1) * c.step + 1 + c.reach_rows,
          (T::kColumns - 1) * c.step + 1 + c.reach_columns};
}

__host__ __device__ inline int MostTaps(const TapConvolution& c) {
  int most = 0;
  for (int grid = 0; grid < c.num_grids; ++grid) {
    if (c.grids[grid].num_taps > most) most = c.grids[grid].num_taps;
  }
  return most;
}

// The weights of one tap in shared memory: rows of source channels for each result channel, or rows
// of result channels for each source channel. Four such rows of floats, which are loaded word by
// word, or eight groups of them are then in different banks.
template <class T, Weights kLayout>
struct WeightTile {
  static constexpr bool kBySource = kLayout == Weights::kSourceInner;
  static constexpr int kRows = kBySource ? T::kChannels : T::kPartChannels;
  static constexpr int kRowWords = kBySource ? kWordsPerPart : T::kChannels / T::kNumbersPerWord;
  static constexpr int kRowPitch = kBySource   ? kPitch
                                   : T::kShort ? kRowWords + kGroupWords
                                               : kRowWords + 8;
  static constexpr int kWords = kRows * kRowPitch;
  static constexpr int kGroupsInRow = kRowWords / kGroupWords;
  static constexpr int kGroups = kRows * kGroupsInRow;
};

// Shared memory of a slot: source pixels and weights of a part.
template <class T>
__host__ __device__ int SlotWords(const TapConvolution& c) {
  constexpr int kWeights = std::max(WeightTile<T, Weights::kSourceInner>::kWords,
                                    WeightTile<T, Weights::kResultInner>::kWords);
  return T::kImages * AreaOf<T>(c).pixels() * kPitch + MostTaps(c) * kWeights;
}

template <class T>
size_t SlotBytes(const TapConvolution& c) {
  return static_cast<size_t>(SlotWords<T>(c)) * sizeof(float);
}
// Shared memory of the table with the addresses of an item's pixels.
template <class T>
size_t TableBytes(const TapConvolution& c) {
  return static_cast<size_t>(T::kImages * AreaOf<T>(c).pixels()) * sizeof(int);
}

// A tile of result pixels and channels: its grid, and its first image, position and channel.
struct Item {
  int grid, image, row, column, result;
};

template <class T>
struct Items {
  unsigned images, down, across, results;
  int count;

  __host__ __device__ explicit Items(const TapConvolution& c)
      : images((c.batch + T::kImages - 1) / T::kImages),
        // The grid of residue 0 is the largest.
        down((c.grids[0].rows + T::kRows - 1) / T::kRows),
        across((c.grids[0].columns + T::kColumns - 1) / T::kColumns),
        results((c.out_channels + T::kChannels - 1) / T::kChannels),
        count(static_cast<int>(images * down * across * results * c.num_grids)) {}

  // Neighbouring items read the same source. Grids differ in taps: a block gets some of each.
  __device__ Item At(const TapConvolution& c, int index) const {
    unsigned rest = static_cast<unsigned>(index);
    const auto take = [&](unsigned count) {
      const unsigned taken = rest % count;
      rest /= count;
      return static_cast<int>(taken);
    };
    Item item;
    item.result = take(results) * T::kChannels;
    item.column = take(across) * T::kColumns;
    item.row = take(down) * T::kRows;
    item.image = take(images) * T::kImages;
    item.grid = static_cast<int>(rest);
    return item;
  }
};

// The unit of multiplication: a part of the source channels of an item. A block's items are
// gridDim.x apart.
template <class T>
struct Part {
  int index;
  Item item;
  int channel = 0;  // the part's first channel
  int slot = 0;
  bool odd = false;  // whether this slot was used an odd number of times before

  __device__ Part(const TapConvolution& c, const Items<T>& items)
      : index(static_cast<int>(blockIdx.x)), item(items.At(c, index)) {}

  __device__ bool Last(const TapConvolution& c) const {
    return channel + T::kPartChannels >= c.channels || c.grids[item.grid].num_taps == 0;
  }
  // The same number for parts with the same weights.
  __device__ int Weights(const TapConvolution& c) const {
    const int parts = (c.channels + T::kPartChannels - 1) / T::kPartChannels;
    return (item.result / T::kChannels * parts + channel / T::kPartChannels) * kMaxResidues +
           item.grid;
  }
  // Advances to the next part. Returns whether there is one.
  __device__ bool Advance(const TapConvolution& c, const Items<T>& items, int slots) {
    if (++slot == slots) {
      slot = 0;
      odd = !odd;
    }
    if (!Last(c)) {
      channel += T::kPartChannels;
      return true;
    }
    channel = 0;
    index += static_cast<int>(gridDim.x);
    if (index >= items.count) return false;
    item = items.At(c, index);
    return true;
  }
};

}  // namespace thimble::tap
