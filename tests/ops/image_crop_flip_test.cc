#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/case_draw.h"
#include "tests/support/op_check.h"
#include "tests/support/run_op.h"
#include "thimble/base/augmentation.h"

namespace thimble {
namespace {

using testing::HasSubstr;

OpCase ImageCropFlipCase(const Shape& x, int64_t seed) {
  return {.op = "image_crop_flip",
          .inputs = {x, Shape{x[0]}, Shape{1}},
          .attributes = {{"seed", seed}},
          .integer_bound = 256};
}

}  // namespace

std::vector<OpCase> ImageCropFlipCases() {
  return {ImageCropFlipCase({1, 5, 5, 1}, 1),   ImageCropFlipCase({0, 8, 8, 3}, 1),
          ImageCropFlipCase({7, 6, 9, 3}, -1),  ImageCropFlipCase({2, 5, 40, 17}, 3),
          ImageCropFlipCase({3, 8, 8, 0}, 3),   ImageCropFlipCase({2, 37, 36, 4}, 5),
          ImageCropFlipCase({20, 32, 32, 3}, 7)};
}

OpCase Random_image_crop_flip(CaseDraw& draw) {
  const int64_t batch = draw.OneIn(24) ? 0 : draw.Between(1, 9);
  return ImageCropFlipCase({batch, draw.Between(5, 40), draw.Between(5, 40), draw.Between(0, 9)},
                           draw.Word());
}

namespace {

std::vector<int> Counting(size_t count) {
  std::vector<int> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// The expected result for one image whose byte i is i.
std::vector<int> Expected(const Shape& x, uint64_t seed, uint32_t epoch, uint32_t sample) {
  std::vector<uint8_t> image(static_cast<size_t>(x.elements()));
  std::iota(image.begin(), image.end(), uint8_t{0});
  std::vector<uint8_t> window(image.size());
  const CropFlip draw = DrawCropFlip({seed, RandomPurpose::kAugment}, epoch, sample);
  CropFlipImage(draw, x[1], x[2], x[3], image.data(), window.data());
  return {window.begin(), window.end()};
}

TEST(ImageCropFlip, DrawsForSeedEpochAndSample) {
  const Shape x{1, 6, 7, 2};
  // A data set may have up to 2^32 images: the largest index has all bits set.
  for (const int sample : {0, 1, 49999, -1}) {
    for (const int epoch : {0, 199}) {
      const auto expected =
          Expected(x, 7, static_cast<uint32_t>(epoch), static_cast<uint32_t>(sample));
      for (const auto& outputs : RunAllKernels(
               ImageCropFlipCase(x, 7), {{{}, Counting(84)}, {{}, {sample}}, {{}, {epoch}}})) {
        EXPECT_EQ(outputs[0].integers, expected) << "sample " << sample << ", epoch " << epoch;
      }
    }
  }
}

TEST(ImageCropFlip, TheRowInTheBatchDoesNotMatter) {
  const Shape x{2, 6, 7, 1};
  std::vector<int> twice = Counting(42);
  twice.insert(twice.end(), twice.begin(), twice.begin() + 42);
  for (const auto& outputs :
       RunAllKernels(ImageCropFlipCase(x, 3), {{{}, twice}, {{}, {8, 8}}, {{}, {2}}})) {
    const auto& images = outputs[0].integers;
    EXPECT_TRUE(std::equal(images.begin(), images.begin() + 42, images.begin() + 42));
  }
}

TEST(ImageCropFlip, RejectsImagesThatCannotBeReflected) {
  EXPECT_THAT(ShapeError(ImageCropFlipCase({1, 4, 8, 3}, 1)),
              HasSubstr("an image of 4 by 8 is too small"));
  EXPECT_THAT(ShapeError(ImageCropFlipCase({1, 8, 4, 3}, 1)),
              HasSubstr("an image of 8 by 4 is too small"));
}

TEST(ImageCropFlip, RejectsWrongShapes) {
  OpCase op_case = ImageCropFlipCase({2, 8, 8, 3}, 1);
  op_case.inputs[0] = Shape{8, 8, 3};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("expected 4 dimensions (B, H, W, C)"));
  op_case = ImageCropFlipCase({2, 8, 8, 3}, 1);
  op_case.inputs[1] = Shape{3};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'samples' has shape (3), expected (2)"));
  op_case = ImageCropFlipCase({2, 8, 8, 3}, 1);
  op_case.inputs[2] = Shape{2};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'epoch' has shape (2), expected (1)"));
}

}  // namespace
}  // namespace thimble
