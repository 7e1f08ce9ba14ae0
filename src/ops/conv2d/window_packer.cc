#include "thimble/ops/conv2d/window_packer.h"

#include <algorithm>
#include <cstring>

namespace thimble {
namespace {

template <int64_t kCount>
inline void CopyExactly(const float* in, float* out) {
  std::memcpy(out, in, kCount * sizeof(float));
}

// Covers kCount to 2 * kCount floats by two copies, which overlap.
template <int64_t kCount>
inline void CopyTwice(const float* in, int64_t count, float* out) {
  CopyExactly<kCount>(in, out);
  CopyExactly<kCount>(in + count - kCount, out + count - kCount);
}

// Windows are short (a few taps of a few channels) and many: copies of fixed size, which the
// compiler turns into vector moves, beat a call of memcpy.
inline void CopyFloats(const float* in, int64_t count, float* out) {
  constexpr int64_t kStep = 16;
  for (; count >= kStep; count -= kStep, in += kStep, out += kStep) CopyExactly<kStep>(in, out);
  if (count >= 8) return CopyTwice<8>(in, count, out);
  if (count >= 4) return CopyTwice<4>(in, count, out);
  for (int64_t i = 0; i < count; ++i) out[i] = in[i];
}

inline void ZeroFloats(int64_t count, float* out) { std::fill_n(out, count, 0.0F); }

}  // namespace

// Within a row of taps, columns and the image run in step: element e of the row, which is channel
// e % channels of tap e / channels, lies e floats after the window's first pixel in that image row.
struct WindowPacker::TapRow {
  int64_t tap = 0;
  int64_t begin = 0;  // elements [begin, end)
  int64_t end = 0;
};

struct WindowPacker::Line {
  int64_t image = 0;
  int64_t row = 0;
  int64_t column = 0;
  int64_t count = 0;
};

void WindowPacker::PackLine(const TapRow& taps, const Line& line, float* panel,
                            size_t stride) const {
  const int64_t count = taps.end - taps.begin;
  const int64_t y = line.row * grid_.stride + grid_.top + taps.tap;
  if (y < 0 || y >= grid_.height) {
    for (int64_t i = 0; i < line.count; ++i, panel += stride) ZeroFloats(count, panel);
    return;
  }
  const int64_t row_floats = grid_.width * grid_.channels;
  const float* image_row = image_ + (line.image * grid_.height + y) * row_floats;
  const int64_t step = grid_.stride * grid_.channels;
  // Where in the image row the piece of the window lies that is copied; may reach over both ends.
  int64_t begin = (line.column * grid_.stride + grid_.left) * grid_.channels + taps.begin;
  for (int64_t i = 0; i < line.count; ++i, panel += stride, begin += step) {
    if (begin >= 0 && begin + count <= row_floats) {
      CopyFloats(image_row + begin, count, panel);
      continue;
    }
    const int64_t first = std::clamp<int64_t>(-begin, 0, count);
    const int64_t last = std::clamp<int64_t>(row_floats - begin, first, count);
    ZeroFloats(first, panel);
    CopyFloats(image_row + begin + first, last - first, panel + first);
    ZeroFloats(count - last, panel + last);
  }
}

void WindowPacker::operator()(const MatrixBlock& block, float* panel, size_t stride) const {
  const int64_t tap_row_elements = grid_.taps_wide * grid_.channels;
  const auto first_column = static_cast<int64_t>(block.column);
  const auto end_column = static_cast<int64_t>(block.column + block.columns);
  const auto first_position = static_cast<int64_t>(block.row);
  for (int64_t column = first_column; column < end_column;) {
    const int64_t tap = column / tap_row_elements;
    const int64_t tap_end = std::min(end_column, (tap + 1) * tap_row_elements);
    const TapRow taps{tap, column - tap * tap_row_elements, tap_end - tap * tap_row_elements};
    const int64_t grid_row = first_position / grid_.columns;
    Line line{grid_row / grid_.rows, grid_row % grid_.rows, first_position % grid_.columns, 0};
    float* out = panel + (column - first_column);
    for (auto left = static_cast<int64_t>(block.rows); left > 0; left -= line.count) {
      line.count = std::min(left, grid_.columns - line.column);
      PackLine(taps, line, out, stride);
      out += line.count * static_cast<int64_t>(stride);
      line.column = 0;
      line.row = (line.row + 1) % grid_.rows;
      if (line.row == 0) ++line.image;
    }
    column = tap_end;
  }
}

}  // namespace thimble
