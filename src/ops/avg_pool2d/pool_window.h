// Where the windows of a pooling op lie along one axis, for CPU and GPU alike.
#pragma once

#include <algorithm>
#include <cstdint>

namespace thimble {

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

}  // namespace thimble
