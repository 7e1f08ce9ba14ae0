#include "thimble/data/augment.h"

#include <cstring>

#include "thimble/base/check.h"

namespace thimble {
namespace {

// Position `i` of a line of `length` pixels that goes on mirrored beyond both of its ends.
int64_t Reflect(int64_t i, int64_t length) {
  if (i < 0) return -i;
  if (i >= length) return 2 * (length - 1) - i;
  return i;
}

}  // namespace

CropFlip DrawCropFlip(const RandomSource& source, uint32_t epoch, uint32_t index) {
  const auto words = source.Words(epoch, index, 0);
  constexpr uint32_t kPlaces = 2 * kCropPadding + 1;
  return {UniformBelow(words[0], kPlaces), UniformBelow(words[1], kPlaces), (words[2] >> 31) != 0};
}

void ApplyCropFlip(const ImageSize& size, const CropFlip& draw, std::span<const uint8_t> from,
                   std::span<uint8_t> to) {
  const int64_t row_bytes = size.width * size.channels;
  const auto image_bytes = static_cast<size_t>(size.height * row_bytes);
  THIMBLE_CHECK(size.height > kCropPadding && size.width > kCropPadding,
                "an image of {} by {} is too small to reflect", size.height, size.width);
  THIMBLE_CHECK(from.size() == image_bytes && to.size() == image_bytes);
  const auto pixel_bytes = static_cast<size_t>(size.channels);
  for (int64_t y = 0; y < size.height; ++y) {
    const int64_t from_y = Reflect(y + draw.top - kCropPadding, size.height);
    const uint8_t* from_row = from.data() + from_y * row_bytes;
    uint8_t* to_row = to.data() + y * row_bytes;
    for (int64_t x = 0; x < size.width; ++x) {
      const int64_t window_x = draw.mirror ? size.width - 1 - x : x;
      const int64_t from_x = Reflect(window_x + draw.left - kCropPadding, size.width);
      std::memcpy(to_row + x * size.channels, from_row + from_x * size.channels, pixel_bytes);
    }
  }
}

}  // namespace thimble
