// LinePacker: how the convolutions read a batch of images. With the packers of the weights, the
// only code that depends on how numbers are stored; all later code sees fp32 lines.
#pragma once

#include <algorithm>
#include <cstdint>

#include "thimble/device/cpu/numbers.h"

namespace thimble {

class LinePacker {
 public:
  LinePacker(ConstNumbers images, int64_t width, int64_t channels)
      : images_(images), width_(width), channels_(channels) {}

  // Writes pixels [first, first + count) of a line; those outside the image are zeros. Lines are
  // numbered consecutively over the batch.
  void operator()(int64_t line, int64_t first, int64_t count, float* out) const {
    const int64_t begin = std::clamp<int64_t>(first, 0, width_);
    const int64_t end = std::clamp<int64_t>(first + count, begin, width_);
    // 0 if the first pixel is in the image or to the right of it.
    const int64_t before = std::clamp<int64_t>(-first, 0, count);
    const int64_t after = count - before - (end - begin);
    out = std::fill_n(out, before * channels_, 0.0F);
    const auto inside = static_cast<size_t>((end - begin) * channels_);
    DecodeNumbers(images_ + FirstOf(line, begin), inside, out);
    std::fill_n(out + inside, after * channels_, 0.0F);
  }

  // The same memory as a single line of `pixels` pixels.
  LinePacker OneLine(int64_t pixels) const { return {images_, pixels, channels_}; }

  // Whether lines can be read in place, if windows do not reach outside of them.
  bool stores_floats() const { return images_.is_float(); }
  const float* InPlace(int64_t line) const { return (images_ + FirstOf(line, 0)).floats(); }

 private:
  size_t FirstOf(int64_t line, int64_t pixel) const {
    return static_cast<size_t>((line * width_ + pixel) * channels_);
  }

  ConstNumbers images_;  // (B, H, W, C)
  int64_t width_;
  int64_t channels_;
};

}  // namespace thimble
