#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/case_draw.h"
#include "tests/support/op_check.h"
#include "tests/support/run_op.h"

namespace thimble {
namespace {

using testing::HasSubstr;

OpCase ImageNormalizeCase(const Shape& x) {
  std::vector<double> mean;
  std::vector<double> deviation;
  for (int64_t c = 0; c < x[3]; ++c) {
    mean.push_back(100.5 + 7.3 * static_cast<double>(c));
    deviation.push_back(60.0 + static_cast<double>(c));
  }
  return {.op = "image_normalize",
          .inputs = {x},
          .attributes = {{"mean", mean}, {"std", deviation}},
          .integer_bound = 256};
}

}  // namespace

std::vector<OpCase> ImageNormalizeCases() {
  return {ImageNormalizeCase({1, 1, 1, 1}),  ImageNormalizeCase({0, 4, 4, 3}),
          ImageNormalizeCase({2, 5, 7, 3}),  ImageNormalizeCase({3, 3, 3, 17}),
          ImageNormalizeCase({1, 2, 2, 64}), ImageNormalizeCase({9, 32, 32, 3}),
          ImageNormalizeCase({2, 5, 7, 1}),  ImageNormalizeCase({1, 3, 3, 33})};
}

OpCase Random_image_normalize(CaseDraw& draw) {
  const int64_t batch = draw.OneIn(24) ? 0 : draw.Between(1, 3);
  return ImageNormalizeCase({batch, draw.Between(1, 40), draw.Between(1, 40), draw.Size(70)});
}

namespace {

TEST(ImageNormalize, CentresAndScalesEachChannel) {
  const OpCase op_case{
      .op = "image_normalize",
      .inputs = {Shape{1, 1, 2, 2}},
      .attributes = {{"mean", std::vector<double>{128, 5}}, {"std", std::vector<double>{64, 0.5}}}};
  for (const auto& outputs : RunAllKernels(op_case, {{{}, {0, 5, 255, 6}}})) {
    EXPECT_EQ(outputs[0].floats, (std::vector<float>{-2, 0, 127.0F / 64, 2}));
  }
}

TEST(ImageNormalize, RejectsImagesThatAreNotFourDimensional) {
  OpCase op_case = ImageNormalizeCase({1, 2, 2, 3});
  op_case.inputs = {Shape{2, 2, 3}};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("expected 4 dimensions (B, H, W, C)"));
}

TEST(ImageNormalize, RejectsWrongNumberOfConstants) {
  OpCase op_case = ImageNormalizeCase({1, 2, 2, 3});
  op_case.attributes.Set("mean", std::vector<double>{1, 2});
  EXPECT_THAT(ShapeError(op_case), HasSubstr("mean has 2 numbers"));
  op_case = ImageNormalizeCase({1, 2, 2, 3});
  op_case.attributes.Set("std", std::vector<double>{});
  EXPECT_THAT(ShapeError(op_case), HasSubstr("std has 0 numbers"));
}

TEST(ImageNormalize, RejectsZeroDeviation) {
  OpCase op_case = ImageNormalizeCase({1, 2, 2, 3});
  op_case.attributes.Set("std", std::vector<double>{1, 0, 1});
  EXPECT_THAT(ShapeError(op_case), HasSubstr("std has 0, expected > 0"));
}

}  // namespace
}  // namespace thimble
