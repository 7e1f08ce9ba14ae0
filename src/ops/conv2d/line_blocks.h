// How a LineConvolution is divided: by shape, threads and scratch, without changing any bit.
#pragma once

#include <cstddef>

#include "thimble/device/cpu/gemm/blocking.h"
#include "thimble/ops/conv2d/window_grid.h"

namespace thimble {

struct LineBlocks {
  // A chunk: output lines of one image, and pixels of each.
  size_t lines = 1;
  size_t columns = 1;
  // A region: output channels, tap rows, and elements of a tap row (all, unless it is one row).
  size_t out_channels = 0;
  size_t tap_rows = 0;
  size_t row_elements = 0;

  // Scratch in floats: first each thread's band of image lines, then the shared weights.
  size_t line_floats = 0;  // 0: lines are read in place
  size_t band_floats = 0;
  size_t weight_floats = 0;
  size_t ScratchBytes(size_t threads) const {
    // Whole cache lines, so that the weights, at the end of the scratch, stay aligned.
    return CeilDivide((weight_floats + threads * band_floats) * sizeof(float), 64) * 64;
  }
};

// Image lines in the band from one output line of a chunk to the next: lines that no tap reads are
// not in the band.
inline size_t BandStep(const WindowGrid& grid, size_t tap_rows) {
  return std::min(static_cast<size_t>(grid.stride), tap_rows);
}

// With pairs: the depth of the tiles (gemm/tiles.h) that a tap row is divided into, or 0 if it is
// not multiplied in tiles on any machine.
size_t RowTileDepth(const WindowGrid& grid);

// The largest blocks whose scratch is at most `scratch_bytes`, or the smallest possible ones.
// Called again with the bytes these blocks need, it returns the same blocks.
LineBlocks ChooseLineBlocks(const WindowGrid& grid, size_t out_channels, size_t threads,
                            size_t scratch_bytes);

// For phases that are processed together: chunks of the same lines and columns, and all weights in
// one region.
LineBlocks LargestLineBlocks(const WindowGrid& grid, size_t out_channels);
LineBlocks BlocksOfPhase(const WindowGrid& grid, const LineBlocks& chunk);

}  // namespace thimble
