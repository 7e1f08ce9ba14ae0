// A 3 x 3 convolution with stride 1 by tiles: forward, or backward to the input with the filters
// rotated by 180 degrees.
#pragma once

#include <cstddef>
#include <span>

#include "thimble/device/cpu/gemm/packer.h"
#include "thimble/device/cpu/thread_pool.h"
#include "thimble/ops/conv2d/winograd/blocking.h"
#include "thimble/ops/conv2d/winograd/tiles.h"

namespace thimble {

// Holds a reference to its packer, which must outlive it (no temporary).
struct WinogradConvolution {
  ConstNumbers input;
  TiledImages input_grid;
  // (9 * C, K): row = (tap, input channel), column = output channel.
  Packer weights;
  Numbers output;  // overwritten
  TiledImages output_grid;
  ConstNumbers added = {};  // an array like the output, added to it; or null
  size_t batch = 0;

  WinogradShape shape() const {
    return {batch * static_cast<size_t>(output_grid.tiles_high * output_grid.tiles_wide),
            static_cast<size_t>(input_grid.channels), static_cast<size_t>(output_grid.channels),
            IsShortNumber(output.type)};
  }
};

// Requires the scratch of ChooseWinogradBlocks for the shape and the pool's threads.
void RunWinogradConvolution(const WinogradConvolution& convolution, std::span<std::byte> scratch,
                            ThreadPool& pool);

}  // namespace thimble
