// LinePacker: how the convolutions read a batch of images. With the packers of the weights, the
// only code that depends on how numbers are stored; all later code sees fp32 lines.
#pragma once

#include <algorithm>
#include <cstdint>

#include "thimble/device/cpu/gemm/pairs.h"
#include "thimble/device/cpu/numbers.h"
#include "thimble/ops/batch_norm/row_passes.h"

namespace thimble {

// Images are read as if a norm had stored its output in numbers of this type, and that were read.
struct InputNorm {
  ChannelNorm norm;
  DType type;
};

class LinePacker {
 public:
  // A norm requires images in 16 bits, which are not read in place.
  LinePacker(ConstNumbers images, int64_t width, int64_t channels, const InputNorm* norm = nullptr)
      : images_(images), width_(width), channels_(channels), norm_(norm) {}

  // With pairs, two channels of bf16 numbers are read as one float (gemm/pairs.h).
  static LinePacker Of(const TensorView& images, int64_t width, int64_t channels, bool pairs) {
    if (!pairs) return {ConstNumbersOf(images), width, channels, images.norm};
    return {{images.data, DType::kF32}, width, channels / 2};
  }

  // Writes pixels [first, first + count) of a line; those outside the image are zeros. Lines are
  // numbered consecutively over the batch.
  void operator()(int64_t line, int64_t first, int64_t count, float* out) const {
    Pack(first, count, out, [&](int64_t begin, size_t inside, float* to) {
      DecodeNumbers(images_ + FirstOf(line, begin), inside, to);
      if (norm_ != nullptr && inside > 0) Normalize(inside, to);
    });
  }

  // The same as pairs of numbers at the same place in two lines of bf16 numbers; a line less than
  // 0 has zeros.
  void PackLinePair(int64_t line, int64_t second, int64_t first, int64_t count, float* out) const {
    Pack(first, count, out, [&](int64_t begin, size_t inside, float* to) {
      const auto at = [&](int64_t any_line) {
        if (any_line < 0) return static_cast<const BF16*>(nullptr);
        return static_cast<const BF16*>((images_ + FirstOf(any_line, begin)).data);
      };
      PairNumbers(at(line), at(second), inside, to);
    });
  }

  // The same memory as a single line of `pixels` pixels.
  LinePacker OneLine(int64_t pixels) const { return {images_, pixels, channels_, norm_}; }

  // Whether lines can be read in place, if windows do not reach outside of them.
  bool stores_floats() const { return images_.is_float(); }
  const float* InPlace(int64_t line) const { return (images_ + FirstOf(line, 0)).floats(); }

 private:
  // Calls pack(first pixel, numbers, out) for the pixels inside the image.
  template <class PackInside>
  void Pack(int64_t first, int64_t count, float* out, const PackInside& pack) const {
    const int64_t begin = std::clamp<int64_t>(first, 0, width_);
    const int64_t end = std::clamp<int64_t>(first + count, begin, width_);
    // 0 if the first pixel is in the image or to the right of it.
    const int64_t before = std::clamp<int64_t>(-first, 0, count);
    const int64_t after = count - before - (end - begin);
    out = std::fill_n(out, before * channels_, 0.0F);
    const auto inside = static_cast<size_t>((end - begin) * channels_);
    pack(begin, inside, out);
    std::fill_n(out + inside, after * channels_, 0.0F);
  }

  void Normalize(size_t count, float* numbers) const {
    const auto channels = static_cast<size_t>(channels_);
    NormalizeRows(norm_->norm, count / channels, channels, {numbers, DType::kF32},
                  {numbers, DType::kF32});
    RoundNumbers(norm_->type, count, numbers);
  }

  size_t FirstOf(int64_t line, int64_t pixel) const {
    return static_cast<size_t>((line * width_ + pixel) * channels_);
  }

  ConstNumbers images_;  // (B, H, W, C)
  int64_t width_;
  int64_t channels_;
  const InputNorm* norm_ = nullptr;
};

}  // namespace thimble
