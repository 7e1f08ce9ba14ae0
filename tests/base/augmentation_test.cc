#include "thimble/base/augmentation.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace thimble {
namespace {

struct Size {
  int64_t height, width, channels;
};
constexpr Size kSize{6, 5, 2};

// Byte i of the image is i, so that each byte shows its position.
std::vector<uint8_t> CountingImage() {
  std::vector<uint8_t> image(static_cast<size_t>(kSize.height * kSize.width * kSize.channels));
  std::iota(image.begin(), image.end(), uint8_t{0});
  return image;
}

std::vector<uint8_t> Apply(const CropFlip& draw) {
  const auto image = CountingImage();
  std::vector<uint8_t> out(image.size(), 255);
  CropFlipImage(draw, kSize.height, kSize.width, kSize.channels, image.data(), out.data());
  return out;
}

// The definition, with an explicitly padded line of indices as in PyTorch's "reflect".
std::vector<int64_t> PaddedLine(int64_t length) {
  std::vector<int64_t> line;
  for (int64_t i = kCropPadding; i >= 1; --i) line.push_back(i);
  for (int64_t i = 0; i < length; ++i) line.push_back(i);
  for (int64_t i = 1; i <= kCropPadding; ++i) line.push_back(length - 1 - i);
  return line;
}

TEST(AugmentTest, MiddleWindowIsTheImage) { EXPECT_EQ(Apply({}), CountingImage()); }

TEST(AugmentTest, EveryWindowMatchesThePaddedImage) {
  const auto rows = PaddedLine(kSize.height);
  const auto columns = PaddedLine(kSize.width);
  for (int64_t top = 0; top <= 2 * kCropPadding; ++top) {
    for (int64_t left = 0; left <= 2 * kCropPadding; ++left) {
      for (const bool mirror : {false, true}) {
        const auto out = Apply({top, left, mirror});
        for (int64_t i = 0; i < std::ssize(out); ++i) {
          const int64_t channel = i % kSize.channels;
          const int64_t x = i / kSize.channels % kSize.width;
          const int64_t y = i / kSize.channels / kSize.width;
          const int64_t from_x = columns[left + (mirror ? kSize.width - 1 - x : x)];
          const int64_t from = (rows[top + y] * kSize.width + from_x) * kSize.channels + channel;
          ASSERT_EQ(out[i], from) << "byte " << i << " of window " << top << ", " << left;
        }
      }
    }
  }
}

TEST(AugmentTest, DrawsAreRepeatableAndUniform) {
  const RandomSource source(3, RandomPurpose::kAugment);
  std::vector<int> tops(9, 0);
  std::vector<int> lefts(9, 0);
  int mirrored = 0;
  constexpr int kDraws = 9000;
  for (uint32_t index = 0; index < kDraws; ++index) {
    const CropFlip draw = DrawCropFlip(source, 5, index);
    ASSERT_EQ(draw.top, DrawCropFlip(source, 5, index).top);
    ++tops.at(draw.top);
    ++lefts.at(draw.left);
    mirrored += draw.mirror ? 1 : 0;
  }
  // Five standard deviations of a binomial count.
  for (int place = 0; place < 9; ++place) {
    EXPECT_NEAR(tops[place], 1000, 150);
    EXPECT_NEAR(lefts[place], 1000, 150);
  }
  EXPECT_NEAR(mirrored, kDraws / 2, 240);
}

TEST(AugmentTest, EpochsDrawAnew) {
  const RandomSource source(3, RandomPurpose::kAugment);
  int same = 0;
  for (uint32_t index = 0; index < 1000; ++index) {
    const CropFlip a = DrawCropFlip(source, 0, index);
    const CropFlip b = DrawCropFlip(source, 1, index);
    same += a.top == b.top && a.left == b.left && a.mirror == b.mirror ? 1 : 0;
  }
  EXPECT_LT(same, 30);  // 1000 / 162 = 6 expected
}

}  // namespace
}  // namespace thimble
