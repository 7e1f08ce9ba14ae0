// LinePacker: pixels of a line for any start and end, without reading a float beyond them.
#include "thimble/ops/conv2d/line_packer.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <numeric>
#include <vector>

namespace thimble {
namespace {

constexpr int64_t kWidth = 5;
constexpr int64_t kChannels = 2;
constexpr int64_t kLines = 3;

// Numbers from 1 on: none is zero like the padding.
std::vector<float> Images() {
  std::vector<float> images(kLines * kWidth * kChannels);
  std::iota(images.begin(), images.end(), 1.0F);
  return images;
}

// Element by element.
std::vector<float> ExpectedPixels(const std::vector<float>& images, int64_t line, int64_t first,
                                  int64_t count) {
  std::vector<float> pixels;
  for (int64_t pixel = first; pixel < first + count; ++pixel) {
    for (int64_t c = 0; c < kChannels; ++c) {
      const bool inside = pixel >= 0 && pixel < kWidth;
      const int64_t place = ((line * kWidth + pixel) * kChannels) + c;
      pixels.push_back(inside ? images[static_cast<size_t>(place)] : 0.0F);
    }
  }
  return pixels;
}

TEST(LinePackerTest, PixelsOutsideAreZerosAndNothingElseIsWritten) {
  constexpr float kUntouched = -1;
  constexpr size_t kGuard = 64;
  const std::vector<float> images = Images();
  const LinePacker packer(images.data(), kWidth, kChannels);
  for (int64_t first = -3 * kWidth; first <= 3 * kWidth; ++first) {
    for (int64_t count = 0; count <= 3 * kWidth; ++count) {
      const std::vector<float> expected = ExpectedPixels(images, 1, first, count);
      std::vector<float> out(expected.size() + 2 * kGuard, kUntouched);
      packer(1, first, count, out.data() + kGuard);
      std::vector<float> all(kGuard, kUntouched);
      all.insert(all.end(), expected.begin(), expected.end());
      all.insert(all.end(), kGuard, kUntouched);
      EXPECT_EQ(out, all) << count << " pixels from " << first << " on";
    }
  }
}

TEST(LinePackerTest, TheSameMemoryAsOneLine) {
  const std::vector<float> images = Images();
  const LinePacker packer(images.data(), kWidth, kChannels);
  std::vector<float> out(images.size());
  packer.OneLine(kLines * kWidth)(0, 0, kLines * kWidth, out.data());
  EXPECT_EQ(out, images);
}

// Pairs are tested in tests/device/pairs_test.cc; here, that both lines have their padding.
TEST(LinePackerTest, TwoLinesAsPairs) {
  std::vector<BF16> images(kLines * kWidth * kChannels);
  for (size_t i = 0; i < images.size(); ++i) images[i].bits = static_cast<uint16_t>(i + 1);
  const LinePacker packer({images.data(), DType::kBF16}, kWidth, kChannels);
  std::vector<float> out((kWidth + 2) * kChannels);
  packer.PackLinePair(0, 2, -1, kWidth + 2, out.data());
  constexpr size_t kLine = kWidth * kChannels;
  for (size_t i = 0; i < out.size(); ++i) {
    const bool inside = i >= kChannels && i < kChannels + kLine;
    const size_t place = i - kChannels;
    const auto pair = std::bit_cast<uint32_t>(out[i]);
    EXPECT_EQ(pair & 0xFFFFU, inside ? place + 1 : 0);
    EXPECT_EQ(pair >> 16, inside ? place + 1 + 2 * kLine : 0);
  }
}

}  // namespace
}  // namespace thimble
