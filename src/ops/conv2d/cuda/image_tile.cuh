// A rectangle of pixels of an image, some of their channels, in shared memory: zeros outside of the
// image and beyond its channels. Copies run by themselves (cp.async); when they have arrived, each
// thread rounds to TF32 what it copied.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/device/cuda/tensor_core.cuh"
#include "thimble/ops/conv2d/cuda/math.h"

namespace thimble {

// One image, (height, width, channels).
struct ImageView {
  const float* pixels;
  int height, width, channels;
};

struct TileArea {
  int rows, columns;  // pixels in shared memory
  constexpr int pixels() const { return rows * columns; }
};

// Where a tile's pixels lie in the image: its first one, which may be outside, and how many image
// pixels lie between neighbours.
struct TileOrigin {
  int row, column, step;
};

// Pixels of a tile: up to here a product stands in for the division by the width of its area.
inline constexpr int kMaxTilePixels = 1024;

// Whether channels come in fours, so that four are copied at once, or one by one.
enum class Channels { kFours, kOdd };

// Copies four floats, of which the first `valid` exist, and makes the others zero.
template <Channels kChannels>
__device__ void CopyFour(float* to, const float* from, int valid) {
  const uint32_t address = SharedAddress(to);
  if constexpr (kChannels == Channels::kFours) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
                 "r"(valid > 0 ? 16 : 0));
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address + 4 * i),
                   "l"(valid > i ? from + i : from), "r"(valid > i ? 4 : 0));
    }
  }
}

// Until all copies of this thread have arrived. Others see them behind a barrier.
__device__ inline void WaitForCopies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

__device__ inline void RoundFour(float* values) {
  const float4 raw = *reinterpret_cast<const float4*>(values);
  *reinterpret_cast<uint4*>(values) = RoundToTf32(raw);
}

// A tile in shared memory, tile[pixel * kPitch + channel], with kLanes * 4 channels; the copies are
// dealt out to kThreads threads.
template <Channels kChannels, int kThreads, int kLanes, int kPitch>
struct ImageTile {
  static constexpr int kPixelsAtOnce = kThreads / kLanes;
  static_assert(kThreads % kLanes == 0);

  __device__ static int Lane() { return static_cast<int>(threadIdx.x) % kLanes; }
  __device__ static int FirstPixel() { return static_cast<int>(threadIdx.x) / kLanes; }

  __device__ static void Copy(const ImageView& image, const TileOrigin& origin,
                              const TileArea& area, int first_channel, float* tile) {
    const int channel = first_channel + Lane() * 4;
    const int valid = image.channels - channel;
    const unsigned inverse = (1U << 20) / area.columns + 1;
    float* to = tile + FirstPixel() * kPitch + Lane() * 4;
    for (int pixel = FirstPixel(); pixel < area.pixels();
         pixel += kPixelsAtOnce, to += kPixelsAtOnce * kPitch) {
      const int tile_row = static_cast<int>((static_cast<unsigned>(pixel) * inverse) >> 20);
      const int row = origin.row + tile_row * origin.step;
      const int column = origin.column + (pixel - tile_row * area.columns) * origin.step;
      // A negative number is a large one here.
      const bool inside = static_cast<unsigned>(row) < static_cast<unsigned>(image.height) &&
                          static_cast<unsigned>(column) < static_cast<unsigned>(image.width);
      const int offset = (row * image.width + column) * image.channels + channel;
      CopyFour<kChannels>(to, image.pixels + (inside && valid > 0 ? offset : 0),
                          inside ? valid : 0);
    }
  }

  // What this thread has copied, once it is there.
  __device__ static void Round(int pixels, float* tile) {
    float* values = tile + FirstPixel() * kPitch + Lane() * 4;
    for (int pixel = FirstPixel(); pixel < pixels;
         pixel += kPixelsAtOnce, values += kPixelsAtOnce * kPitch) {
      RoundFour(values);
    }
  }
};

}  // namespace thimble
