#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/case_draw.h"
#include "tests/support/op_check.h"
#include "tests/support/run_op.h"

namespace thimble {
namespace {

using testing::HasSubstr;

OpCase AvgPool2dCase(const Shape& x, int64_t kernel, int64_t stride) {
  return {
      .op = "avg_pool2d", .inputs = {x}, .attributes = {{"kernel", kernel}, {"stride", stride}}};
}

OpCase AvgPool2dGradCase(const Shape& dy, int64_t kernel, int64_t stride, int64_t height,
                         int64_t width) {
  return {
      .op = "avg_pool2d_grad",
      .inputs = {dy},
      .attributes = {{"kernel", kernel}, {"stride", stride}, {"height", height}, {"width", width}}};
}

// Windows that overlap, touch or leave gaps, up to the whole image.
struct Pooling {
  Shape x;
  int64_t kernel;
  int64_t stride;

  explicit Pooling(CaseDraw& draw)
      : x{draw.OneIn(24) ? 0 : draw.Between(1, 3), draw.Between(1, 24), draw.Between(1, 24),
          draw.Size(40)},
        kernel(draw.Between(1, std::min(x[1], x[2]))),
        stride(draw.OneIn(8) ? draw.Between(1, 40) : draw.Between(1, 4)) {}
  int64_t Windows(int64_t size) const { return (size - kernel) / stride + 1; }
};

}  // namespace

std::vector<OpCase> AvgPool2dCases() {
  return {
      AvgPool2dCase({2, 8, 8, 64}, 8, 8),    // global
      AvgPool2dCase({1, 1, 1, 1}, 1, 1),     // smallest
      AvgPool2dCase({0, 4, 4, 3}, 2, 2),     // no images
      AvgPool2dCase({3, 7, 5, 17}, 2, 2),    // a row and a column left out
      AvgPool2dCase({2, 6, 7, 33}, 3, 1),    // windows overlap
      AvgPool2dCase({2, 7, 7, 3}, 2, 3),     // gaps between windows
      AvgPool2dCase({9, 16, 16, 32}, 2, 2),  // several chunks
      AvgPool2dGradCase({2, 1, 1, 64}, 8, 8, 8, 8),
      AvgPool2dGradCase({0, 2, 2, 3}, 2, 2, 4, 4),
      AvgPool2dGradCase({3, 3, 2, 17}, 2, 2, 7, 5),
      AvgPool2dGradCase({2, 4, 5, 33}, 3, 1, 6, 7),
      AvgPool2dGradCase({2, 2, 2, 3}, 2, 3, 7, 7),
      AvgPool2dGradCase({9, 8, 8, 32}, 2, 2, 16, 16),
  };
}

OpCase Random_avg_pool2d(CaseDraw& draw) {
  const Pooling pooling(draw);
  return AvgPool2dCase(pooling.x, pooling.kernel, pooling.stride);
}

OpCase Random_avg_pool2d_grad(CaseDraw& draw) {
  const Pooling pooling(draw);
  const Shape& x = pooling.x;
  const Shape dy{x[0], pooling.Windows(x[1]), pooling.Windows(x[2]), x[3]};
  OpCase op_case = AvgPool2dGradCase(dy, pooling.kernel, pooling.stride, x[1], x[2]);
  // Pixels in the middle are in more windows than others; each is divided, then added.
  const int64_t reach = (pooling.kernel - 1) / pooling.stride + 1;
  op_case.shared_sum_size =
      static_cast<double>(2 * std::min(reach, dy[1]) * std::min(reach, dy[2]));
  return op_case;
}

namespace {

TEST(AvgPool2d, AveragesWindows) {
  // One channel, rows 0 1 2 / 3 4 5: the third column has no whole window.
  for (const auto& outputs :
       RunAllKernels(AvgPool2dCase({1, 2, 3, 1}, 2, 2), {{{0, 1, 2, 3, 4, 5}, {}}})) {
    EXPECT_EQ(outputs[0].floats, std::vector<float>{2});
  }
}

TEST(AvgPool2d, PassesNanToItsWindowOnly) {
  for (const auto& outputs :
       RunAllKernels(AvgPool2dCase({1, 2, 4, 1}, 2, 2), {{{0, 1, 2, NAN, 3, 4, 5, 6}, {}}})) {
    EXPECT_EQ(outputs[0].floats[0], 2);
    EXPECT_TRUE(std::isnan(outputs[0].floats[1]));
  }
}

TEST(AvgPool2dGrad, GivesZeroWhereNoWindowLooked) {
  for (const auto& outputs :
       RunAllKernels(AvgPool2dGradCase({1, 1, 1, 1}, 2, 2, 2, 3), {{{8}, {}}})) {
    EXPECT_EQ(outputs[0].floats, (std::vector<float>{2, 2, 0, 2, 2, 0}));
  }
}

TEST(AvgPool2d, RejectsWrongRank) {
  EXPECT_THAT(ShapeError(AvgPool2dCase({4, 4, 3}, 2, 2)), HasSubstr("expected 4 dimensions"));
  EXPECT_THAT(ShapeError(AvgPool2dGradCase({4, 4, 3}, 2, 2, 8, 8)),
              HasSubstr("expected 4 dimensions"));
}

TEST(AvgPool2d, RejectsWindowsThatDoNotFit) {
  EXPECT_THAT(ShapeError(AvgPool2dCase({1, 4, 2, 3}, 3, 1)),
              HasSubstr("larger than the 4 x 2 image"));
  EXPECT_THAT(ShapeError(AvgPool2dCase({1, 4, 4, 3}, 0, 1)), HasSubstr("kernel is 0"));
  EXPECT_THAT(ShapeError(AvgPool2dCase({1, 4, 4, 3}, 2, 0)), HasSubstr("stride is 0"));
  EXPECT_THAT(ShapeError(AvgPool2dCase({1, 4, 4, 3}, -2, 1)), HasSubstr("kernel is -2"));
}

TEST(AvgPool2dGrad, RejectsShapesThatDoNotBelongTogether) {
  EXPECT_THAT(ShapeError(AvgPool2dGradCase({1, 3, 2, 3}, 2, 2, 4, 4)),
              HasSubstr("'dy' has shape (1, 3, 2, 3), expected (1, 2, 2, 3)"));
  EXPECT_THAT(ShapeError(AvgPool2dGradCase({1, 2, 2, 3}, 2, 2, -1, 4)), HasSubstr("height is -1"));
}

}  // namespace
}  // namespace thimble
