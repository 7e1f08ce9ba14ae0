// The gradient of 3 x 3 filters with stride 1 by tiles.
#pragma once

#include <cstddef>
#include <span>

#include "thimble/device/cpu/thread_pool.h"
#include "thimble/ops/conv2d/winograd/blocking.h"
#include "thimble/ops/conv2d/winograd/tiles.h"

namespace thimble {

struct WinogradWeightGradient {
  ConstNumbers input;
  TiledImages input_grid;
  ConstNumbers output_gradient;
  TiledImages output_grid;
  Numbers weight_gradient;  // (K, 9, C), overwritten
  size_t batch = 0;

  WinogradShape shape() const {
    return {batch * static_cast<size_t>(output_grid.tiles_high * output_grid.tiles_wide),
            static_cast<size_t>(input_grid.channels), static_cast<size_t>(output_grid.channels),
            IsShortNumber(weight_gradient.type)};
  }
};

// Requires the scratch of ChooseWinogradGradientBlocks for the shape and the pool's threads.
void RunWinogradWeightGradient(const WinogradWeightGradient& gradient, std::span<std::byte> scratch,
                               ThreadPool& pool);

}  // namespace thimble
