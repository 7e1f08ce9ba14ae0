// How much of a Winograd convolution is processed at a time. None of these sizes changes a bit of
// the result, so they are chosen by threads and scratch. (kWinogradChannels and the parts of the
// weight gradient do affect bits and depend on the shape alone.)
#pragma once

#include <cstddef>

#include "thimble/device/cpu/gemm/micro_kernel.h"
#include "thimble/ops/conv2d/winograd/tiles.h"

namespace thimble {

// A convolution with K filters of 3 x 3 x C over this many tiles of 4 x 4 outputs.
struct WinogradShape {
  size_t tiles = 0;
  size_t channels = 0;
  size_t out_channels = 0;
  // Outputs, or weight gradients, store 16 bits: sums are kept in scratch until they are complete.
  bool short_results = false;
};

struct WinogradBlocks {
  size_t tiles = 0;         // a group, processed by one thread
  size_t channels = 0;      // of C
  size_t out_channels = 0;  // of K, rounded up to whole strips of kMaxTileColumns
  // The tiles (convolution) or output channels (weight gradient) whose sums are completed before
  // the next region begins; all of them unless the sums are kept in scratch.
  size_t region = 0;
  // Scratch in floats: first the private part of each thread, then the sums of a region (of a
  // convolution; those of the weight gradient are shared), then the shared part.
  size_t floats_per_thread = 0;
  size_t sum_floats = 0;
  size_t shared_floats = 0;
  size_t ScratchBytes(size_t threads) const {
    return (threads * floats_per_thread + sum_floats + shared_floats) * sizeof(float);
  }
};

// Floats of one point's matrix and of all points' matrices. One additional cache line keeps the
// points from mapping to the same cache sets.
constexpr size_t WinogradPointStride(size_t rows, size_t columns) { return rows * columns + 16; }
constexpr size_t WinogradFloats(size_t rows, size_t columns) {
  return kWinogradPoints * WinogradPointStride(rows, columns);
}

// Filters are transformed this many input channels at a time; their taps, packed, take
// kTapFloats of a thread's scratch.
inline constexpr size_t kTapRows = 16;
inline constexpr size_t kTapFloats = kWinogradTaps * kTapRows * kMaxTileColumns;

// Convolution: the transformed filters of a block are shared; each thread has the values and
// products of a group of tiles. Sums over several blocks of input channels are made in the output,
// or in scratch if that stores 16 bits.
// The weight gradient: each thread has the sums of a block and the values of a group of tiles; the
// sums of all parts but the first are shared, and of the first if the result stores 16 bits.
// Both: the fastest blocks by a rough count of cycles whose scratch is at most `scratch_bytes`, or
// the smallest possible ones. Called again with the bytes these need, they return the same blocks.
WinogradBlocks ChooseWinogradBlocks(const WinogradShape& shape, size_t threads,
                                    size_t scratch_bytes);
WinogradBlocks ChooseWinogradGradientBlocks(const WinogradShape& shape, size_t threads,
                                            size_t scratch_bytes);

// The number of parts into which the tiles of the weight gradient are divided, each summed
// separately: enough for several threads, fewer for large filters, whose sums would fill the
// scratch. Depends on the shape alone.
size_t WinogradGradientParts(const WinogradShape& shape);

}  // namespace thimble
