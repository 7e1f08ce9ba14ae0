// WindowGrid: the windows of a convolution on a batch of images, for the forward product and for
// each phase of the input gradient.
#pragma once

#include <cstdint>

namespace thimble {

struct WindowGrid {
  // The images: (batch, height, width, channels).
  int64_t batch = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  // Windows per image, in rows and columns; the window of position (i, j) begins at the pixel
  // (i * stride + top, j * stride + left) and may reach outside, where the image is zero.
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t stride = 1;
  int64_t top = 0;
  int64_t left = 0;
  int64_t taps_high = 0;
  int64_t taps_wide = 0;
  // Whether numbers are stored in 16 bits: such images are converted line by line, and sums must be
  // complete before they are stored.
  bool short_images = false;
  bool short_outputs = false;
  // Whether a channel is a pair of bf16 numbers (gemm/pairs.h).
  bool pairs = false;

  // The elements of a window in one line of the image, which are adjacent.
  int64_t row_elements() const { return taps_wide * channels; }
  int64_t window_elements() const { return taps_high * row_elements(); }
  // Whether windows can be read where they are stored: none reaches beyond the sides of the image.
  bool ReadsInPlace() const {
    return !short_images && left >= 0 && left + (columns - 1) * stride + taps_wide <= width;
  }
};

}  // namespace thimble
