// A rectangle of pixels of an image, some of their channels, in shared memory: zeros outside the
// image and beyond its channels. Copies are asynchronous (cp.async); when those of floats have
// completed, each thread rounds the values it copied to TF32.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/device/cuda/tensor_core.cuh"
#include "thimble/ops/conv2d/cuda/factor_groups.cuh"

namespace thimble {

// One image, (height, width, channels).
template <class Groups>
struct ImageView {
  Groups groups;
  int height, width, channels;
};

struct TileArea {
  int rows, columns;  // pixels in shared memory
  constexpr int pixels() const { return rows * columns; }
};

// Divides numbers below kMaxTilePixels by multiplying.
struct Divisor {
  unsigned inverse;
  explicit Divisor(int by) : inverse((1U << 20) / static_cast<unsigned>(by) + 1) {}
  __device__ int Quotient(int number) const {
    return static_cast<int>((static_cast<unsigned>(number) * inverse) >> 20);
  }
};

// The position of a tile in the image: its first pixel, which may be outside, and the distance
// between neighbours in image pixels.
struct TileOrigin {
  int row, column, step;
};

// Maximum pixels of a tile: up to here a multiplication can replace a division.
inline constexpr int kMaxTilePixels = 1024;

// With a pitch of 20 or 36 words, rows of 16 words are in different banks if four other rows are
// between them. Neighbouring threads take such rows to avoid bank conflicts.
__device__ inline int RowInOtherBanks(int row) { return row / 8 * 8 + row % 2 * 4 + row % 8 / 2; }

// A tile in shared memory, tile[pixel * kPitch + channel], with kDepth channels; the copies are
// distributed over kThreads threads. Up to four of them share a pixel and alternate over its groups
// of channels, so that together they read 64 consecutive bytes.
template <class Groups, int kThreads, int kDepth, int kPitch>
struct ImageTile {
  using Number = typename Groups::Number;
  static constexpr int kChannels = kDepth;
  static constexpr int kPixelPitch = kPitch;
  static constexpr int kGroup = Groups::kNumbers;
  static constexpr int kLanes = kDepth < 4 * kGroup ? kDepth / kGroup : 4;
  static constexpr int kStride = kLanes * kGroup;  // channels between a thread's groups
  static constexpr int kPixelsAtOnce = kThreads / kLanes;
  static_assert(kThreads % kLanes == 0 && kDepth % kStride == 0 && kPixelsAtOnce % 8 == 0);

  __device__ static int LaneChannel(int thread) { return thread % kLanes * kGroup; }
  __device__ static int FirstPixel(int thread) { return RowInOtherBanks(thread / kLanes); }

  // Called by threads 0 to kThreads - 1. `columns` divides by the area's number of columns.
  __device__ static void Copy(int thread, const ImageView<Groups>& image, const TileOrigin& origin,
                              const TileArea& area, const Divisor& columns, int first_channel,
                              Number* tile) {
    const int channel = first_channel + LaneChannel(thread);
    const int first_row = columns.Quotient(FirstPixel(thread));
    int row = origin.row + first_row * origin.step;
    int column = origin.column + (FirstPixel(thread) - first_row * area.columns) * origin.step;
    const int end_column = origin.column + area.columns * origin.step;
    const int rows_at_once = columns.Quotient(kPixelsAtOnce);
    const int columns_at_once = (kPixelsAtOnce - rows_at_once * area.columns) * origin.step;
    Number* to = tile + FirstPixel(thread) * kPitch + LaneChannel(thread);
#pragma unroll 2
    for (int pixel = FirstPixel(thread); pixel < area.pixels(); pixel += kPixelsAtOnce) {
      // As unsigned, a negative number is large.
      const bool inside = static_cast<unsigned>(row) < static_cast<unsigned>(image.height) &&
                          static_cast<unsigned>(column) < static_cast<unsigned>(image.width);
      const int valid = inside ? image.channels - channel : 0;
      const int index = (row * image.width + column) * image.channels + channel;
#pragma unroll
      for (int i = 0; i < kDepth; i += kStride) image.groups.Copy(index + i, valid - i, to + i);
      to += kPixelsAtOnce * kPitch;
      row += rows_at_once * origin.step;
      column += columns_at_once;
      if (column >= end_column) {
        column -= area.columns * origin.step;
        row += origin.step;
      }
    }
  }

  // Rounds what this thread copied, after the copies completed: a few pixels at a time, so that
  // their loads overlap.
  __device__ static void Round(int thread, int pixels, float* tile) {
    constexpr int kGroups = kDepth / kStride;
    constexpr int kBatch = kGroups > 1 ? 3 : 6;
    constexpr int kStep = kPixelsAtOnce * kPitch;
    float* values = tile + FirstPixel(thread) * kPitch + LaneChannel(thread);
    int left = pixels > FirstPixel(thread)
                   ? (pixels - FirstPixel(thread) + kPixelsAtOnce - 1) / kPixelsAtOnce
                   : 0;
    for (; left > 0; left -= kBatch, values += kBatch * kStep) {
      float4 batch[kBatch][kGroups];
#pragma unroll
      for (int i = 0; i < kBatch * kGroups; ++i) {
        if (i / kGroups >= left) break;
        batch[i / kGroups][i % kGroups] =
            *Four(values + i / kGroups * kStep + i % kGroups * kStride);
      }
#pragma unroll
      for (int i = 0; i < kBatch * kGroups; ++i) {
        if (i / kGroups >= left) break;
        *Four(values + i / kGroups * kStep + i % kGroups * kStride) =
            RoundToTf32(batch[i / kGroups][i % kGroups]);
      }
    }
  }

 private:
  __device__ static float4* Four(float* values) { return reinterpret_cast<float4*>(values); }
};

}  // namespace thimble
