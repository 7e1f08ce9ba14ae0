// Augmentation of one training image: reflect-pad by 4, cut a window of the original size at a
// random place, mirror it half of the time. The draw depends on seed, epoch and sample only, so a
// step can be repeated and the number of threads, the microbatch or a resume change nothing.
#pragma once

#include <cstdint>
#include <span>

#include "thimble/base/philox.h"

namespace thimble {

enum class Augmentation : uint8_t { kNone, kCropFlip };

// Pixels of padding on each side; the recipe's value.
inline constexpr int64_t kCropPadding = 4;

struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

// Where the window lies in the padded image, 0..2·kCropPadding from its corner, and whether it is
// mirrored left to right. (kCropPadding, kCropPadding, false) is the image itself.
struct CropFlip {
  int64_t top = kCropPadding;
  int64_t left = kCropPadding;
  bool mirror = false;
};

// The draw for sample `index` of the data set in `epoch`; `source` has the purpose kAugment.
CropFlip DrawCropFlip(const RandomSource& source, uint32_t epoch, uint32_t index);

// Writes the window of `from` to `to`, both (H, W, C) and not overlapping. The border is mirrored
// about the edge pixel, which is not repeated (as padding mode "reflect" of PyTorch). Requires both
// sides of the image to be longer than the padding.
void ApplyCropFlip(const ImageSize& size, const CropFlip& draw, std::span<const uint8_t> from,
                   std::span<uint8_t> to);

}  // namespace thimble
