#include "thimble/ops/conv2d/grad_weight_lines.h"

#include <algorithm>

#include "thimble/device/cpu/gemm/outer_product.h"
#include "thimble/device/cpu/gemm/packer.h"

namespace thimble {

void GradWeightLines::SetBlock(IndexRange lines) {
  lines_ = lines;
  tap_row_ = -1;
  if (run_.pairs) return PackPairs();
  if (run_.blocks.line_floats > 0) PackBand();
  if (!run_.dy.is_float()) CopyOutputLines(lines);
}

void GradWeightLines::SetTapRow(int64_t tap_row) {
  if (tap_row == tap_row_) return;
  tap_row_ = tap_row;
  count_ = 0;
  if (run_.pairs) return SetPairs(tap_row);
  for (size_t line = lines_.begin; line < lines_.end; ++line) {
    const int64_t image_line = ImageLine(line, tap_row);
    if (image_line < 0) continue;
    x_[count_] = run_.blocks.line_floats > 0 ? BandLine(line, tap_row) : run_.x.InPlace(image_line);
    dy_[count_++] = OutputLine(line);
  }
}

// Also numbered over the batch; negative outside the image. `further`: the line that the tap row
// reads that many output lines further down the same image.
int64_t GradWeightLines::ImageLine(size_t line, int64_t tap_row, int64_t further) const {
  const Conv2dGeometry& g = run_.g;
  const auto image = static_cast<int64_t>(line) / g.out_height;
  const int64_t out_row = static_cast<int64_t>(line) % g.out_height + further;
  const int64_t row = out_row * g.stride - g.padding + tap_row;
  return row < 0 || row >= g.height ? -1 : image * g.height + row;
}

float* GradWeightLines::BandLine(size_t line, int64_t tap_row) const {
  const size_t slot = BandSlot(run_.g, lines_.begin, line, static_cast<size_t>(tap_row));
  return band_ + slot * run_.blocks.line_floats;
}

// The pixels of a packed line.
int64_t GradWeightLines::FirstPixel() const { return run_.cut.pads_lines ? -run_.g.padding : 0; }
int64_t GradWeightLines::NumPixels() const {
  const Conv2dGeometry& g = run_.g;
  return run_.cut.pads_lines ? (g.out_width - 1) * g.stride + g.kernel_width : g.width;
}

void GradWeightLines::PackBand() const {
  const Conv2dGeometry& g = run_.g;
  const int64_t step = std::min(g.stride, g.kernel_height);
  for (size_t line = lines_.begin; line < lines_.end; ++line) {
    const bool is_first = line == lines_.begin || static_cast<int64_t>(line) % g.out_height == 0;
    for (int64_t tap = is_first ? 0 : g.kernel_height - step; tap < g.kernel_height; ++tap) {
      const int64_t image_line = ImageLine(line, tap);
      if (image_line >= 0) run_.x(image_line, FirstPixel(), NumPixels(), BandLine(line, tap));
    }
  }
}

// Calls visit(line, is_single, is_first) for each pair of output lines, and for the last line of
// an image or of the block if it remains alone; is_first: no pair of the same image came before.
template <class Visit>
void GradWeightLines::ForEachPair(const Visit& visit) const {
  const auto out_height = static_cast<size_t>(run_.g.out_height);
  bool is_first = true;
  for (size_t line = lines_.begin; line < lines_.end;) {
    const bool is_single = line + 1 == lines_.end || (line + 1) % out_height == 0;
    visit(line, is_single, is_first);
    line += is_single ? 1 : 2;
    is_first = line % out_height == 0;
  }
}

// A pair of image lines is packed in the slot of its first line; where that is also the first
// line of an earlier pair, their second lines are the same too.
void GradWeightLines::PackPairs() const {
  const Conv2dGeometry& g = run_.g;
  const size_t floats = OutputLineFloats();
  const int64_t step = std::min(g.stride, g.kernel_height);
  float* dy = copied_;
  ForEachPair([&](size_t line, bool is_single, bool is_first) {
    const int64_t first_tap = is_first ? 0 : std::max<int64_t>(0, g.kernel_height - 2 * step);
    for (int64_t tap = first_tap; tap < g.kernel_height; ++tap) {
      run_.x.PackLinePair(ImageLine(line, tap), ImageLine(line, tap, 1), FirstPixel(), NumPixels(),
                          BandLine(line, tap));
    }
    const auto* numbers = static_cast<const BF16*>(run_.dy.data) + line * floats;
    const BF16* second = is_single ? nullptr : numbers + floats;
    if (run_.tiles) {
      TransposePairs(numbers, second, dy);
    } else {
      PairNumbers(numbers, second, floats, dy);
    }
    dy += floats;
  });
  std::fill_n(dy, kMaxLanes, 0.0F);
}

// to (columns, pixels) = pairs of the numbers of two output lines.
void GradWeightLines::TransposePairs(const BF16* first, const BF16* second, float* to) const {
  alignas(64) float pairs[kMaxTiledChannels];
  const auto channels = static_cast<size_t>(run_.g.out_channels);
  const auto width = static_cast<size_t>(run_.g.out_width);
  const TransposedPacker transpose(pairs, channels);
  const size_t step = kMaxTiledChannels / channels;
  for (size_t pixel = 0; pixel < width; pixel += step) {
    const size_t pixels = std::min(step, width - pixel);
    const size_t begin = pixel * channels;
    PairNumbers(first + begin, second == nullptr ? nullptr : second + begin, pixels * channels,
                pairs);
    transpose({columns_.begin, columns_.size(), 0, pixels}, to + pixel, width);
  }
}

void GradWeightLines::SetPairs(int64_t tap_row) {
  const float* dy = copied_;
  ForEachPair([&](size_t line, bool /*is_single*/, bool /*is_first*/) {
    if (ImageLine(line, tap_row) >= 0 || ImageLine(line, tap_row, 1) >= 0) {
      x_[count_] = BandLine(line, tap_row);
      dy_[count_++] = dy;
    }
    dy += OutputLineFloats();
  });
}

size_t GradWeightLines::OutputLineFloats() const {
  return static_cast<size_t>(run_.g.out_width * run_.g.out_channels);
}

// A vector may reach beyond the last of them, into zeros.
void GradWeightLines::CopyOutputLines(IndexRange lines) const {
  const size_t floats = OutputLineFloats();
  DecodeNumbers(run_.dy + lines.begin * floats, lines.size() * floats, copied_);
  std::fill_n(copied_ + lines.size() * floats, kMaxLanes, 0.0F);
}

const float* GradWeightLines::OutputLine(size_t line) const {
  const size_t floats = OutputLineFloats();
  if (!run_.dy.is_float()) return copied_ + (line - lines_.begin) * floats;
  const auto lines = static_cast<size_t>(run_.g.batch * run_.g.out_height);
  const size_t first_copied = lines - NumCopiedLines(run_.g);
  if (line >= first_copied) {
    // Copied again for each tap row; it is little data.
    CopyOutputLines({first_copied, lines});
    return copied_ + (line - first_copied) * floats;
  }
  return (run_.dy + line * floats).floats();
}

}  // namespace thimble
