// WindowPacker: the im2col matrix of an image, read block by block and never stored. Row = position
// of the window, column = (tap row, tap column, channel); taps outside the image read zero.
#pragma once

#include <cstdint>

#include "thimble/device/cpu/gemm/packer.h"

namespace thimble {

struct WindowGrid {
  // The image: (batch, height, width, channels).
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  // Positions per image, in rows and columns; the window of position (i, j) begins at the pixel
  // (i * stride + top, j * stride + left).
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t stride = 1;
  int64_t top = 0;
  int64_t left = 0;
  int64_t taps_high = 0;
  int64_t taps_wide = 0;
};

class WindowPacker {
 public:
  WindowPacker(const float* image, const WindowGrid& grid) : image_(image), grid_(grid) {}
  void operator()(const MatrixBlock& block, float* panel, size_t stride) const;

 private:
  struct TapRow;  // the columns of a block that belong to one row of taps
  struct Line;    // neighbouring positions of one grid row
  void PackLine(const TapRow& taps, const Line& line, float* panel, size_t stride) const;

  const float* image_;
  WindowGrid grid_;
};

}  // namespace thimble
