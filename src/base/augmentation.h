// Augmentation of one training image: reflect-pad by 4, crop a window of the original size at a
// random position, mirror it with probability 1/2. The draw depends only on seed, epoch and sample,
// so it is the same for any number of threads, any microbatch size and after a resume. constexpr,
// so that CPU and GPU share it.
#pragma once

#include <cstdint>
#include <cstring>

#include "thimble/base/philox.h"

namespace thimble {

enum class Augmentation : uint8_t { kNone, kCropFlip };

// Pixels of padding on each side, the recipe's value. Height and width of an image must be larger.
inline constexpr int64_t kCropPadding = 4;

// The position of the window in the padded image, 0..2·kCropPadding from its corner, and whether it
// is mirrored left to right. (kCropPadding, kCropPadding, false) is the image itself.
struct CropFlip {
  int64_t top = kCropPadding;
  int64_t left = kCropPadding;
  bool mirror = false;
};

// The draw for a sample (its index in the data set) in `epoch`; `source` has the purpose kAugment.
constexpr CropFlip DrawCropFlip(const RandomSource& source, uint32_t epoch, uint32_t sample) {
  const auto words = source.Words(epoch, sample, 0);
  constexpr uint32_t kPlaces = 2 * kCropPadding + 1;
  return {UniformBelow(words[0], kPlaces), UniformBelow(words[1], kPlaces), (words[2] >> 31) != 0};
}

// Maps position `i` to 0..length-1 for a line of `length` pixels mirrored beyond both ends. The
// edge pixel is not repeated (as padding mode "reflect" of PyTorch).
constexpr int64_t Reflect(int64_t i, int64_t length) {
  if (i < 0) return -i;
  if (i >= length) return 2 * (length - 1) - i;
  return i;
}

// The row-major index of the image pixel at (y, x) of the window.
constexpr int64_t SourcePixel(const CropFlip& draw, int64_t height, int64_t width, int64_t y,
                              int64_t x) {
  const int64_t window_x = draw.mirror ? width - 1 - x : x;
  return Reflect(y + draw.top - kCropPadding, height) * width +
         Reflect(window_x + draw.left - kCropPadding, width);
}

// Writes the window of `from` to `to`, both (H, W, C) and not overlapping.
inline void CropFlipImage(const CropFlip& draw, int64_t height, int64_t width, int64_t channels,
                          const uint8_t* from, uint8_t* to) {
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x, to += channels) {
      const int64_t pixel = SourcePixel(draw, height, width, y, x);
      std::memcpy(to, from + pixel * channels, static_cast<size_t>(channels));
    }
  }
}

}  // namespace thimble
