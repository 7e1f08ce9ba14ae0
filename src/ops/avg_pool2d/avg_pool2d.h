// Kernels of avg_pool2d and avg_pool2d_grad. All gather: each position of the result sums its own
// contributions, so threads never write to the same address.
#pragma once

#include <algorithm>
#include <cstdint>

#include "thimble/graph/kernel.h"

namespace thimble {

// The positions of windows along one axis, for CPU and GPU.
struct PoolWindow {
  int64_t kernel;
  int64_t stride;

  // Number of whole windows along an axis of `size` >= kernel.
  constexpr int64_t Count(int64_t size) const { return (size - kernel) / stride + 1; }
  // The windows that cover `position`, of `count` in all: [First, End).
  constexpr int64_t First(int64_t position) const {
    return position < kernel ? 0 : (position - kernel) / stride + 1;
  }
  constexpr int64_t End(int64_t position, int64_t count) const {
    return std::min(count, position / stride + 1);
  }
};

// A rectangle of positions of a tensor (B, H, W, C).
struct PoolRectangle {
  size_t corner;  // the element of its first position and channel
  int64_t height;
  int64_t width;
  int64_t row_stride;  // elements from one row to the next
  size_t channels;
};

struct AvgPool2dCpu {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};

struct AvgPool2dGradCpu {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};

struct AvgPool2dCuda {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};

struct AvgPool2dGradCuda {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};

}  // namespace thimble
