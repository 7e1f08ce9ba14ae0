#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/case_draw.h"
#include "tests/support/op_check.h"
#include "tests/support/op_inputs.h"
#include "tests/support/run_op.h"
#include "tests/support/tolerance.h"

namespace thimble {
namespace {

using testing::HasSubstr;

using Floats = std::vector<float>;

int64_t ChannelsOf(const Shape& x) { return x[x.rank() - 1]; }

Shape RowsOf(const Shape& x) { return Shape(x.dims().first(x.rank() - 1)); }

// A row's elements are in its sums, all rows in those of gamma and beta.
double LongestLayerSum(const Shape& x) {
  return static_cast<double>(std::max({int64_t{1}, ChannelsOf(x), RowsOf(x).elements()}));
}

OpCase LayerNormCase(const Shape& x) {
  const Shape channels{ChannelsOf(x)};
  return {.op = "layer_norm",
          .inputs = {x, channels, channels},
          .positive_inputs = {1},
          .shared_sum_size = LongestLayerSum(x)};
}

OpCase LayerNormGradCase(const Shape& x) {
  return {.op = "layer_norm_grad",
          .inputs = {x, Shape{ChannelsOf(x)}, RowsOf(x), RowsOf(x), x},
          .positive_inputs = {1, 3},
          .shared_sum_size = LongestLayerSum(x)};
}

// Very few normalized elements are only a sign and rounding errors, which changing the inputs does
// not show: shorter rows are not drawn.
Shape RandomLayerRows(CaseDraw& draw, int64_t least_channels) {
  for (;;) {
    const Shape x = draw.AnyShape(2);
    if (x.elements() == 0 || ChannelsOf(x) >= least_channels) return x;
  }
}

}  // namespace

// Narrow and wide rows, one and several chunks of rows, several pieces of a row. On a GPU: several
// rows per warp, rows that fill some of the groups of a warp.
std::vector<OpCase> LayerNormCases() {
  std::vector<OpCase> cases;
  for (const Shape& x :
       {Shape{1, 2}, Shape{7, 3}, Shape{5, 3, 8}, Shape{2, 3, 4, 17}, Shape{13, 25, 64},
        Shape{2, 1024}, Shape{3, 1025}, Shape{2, 5000}, Shape{5000, 5}, Shape{4300, 8},
        Shape{35, 264}, Shape{20, 1016}, Shape{0, 4}, Shape{3, 0}, Shape{2, 0, 6}}) {
    cases.push_back(LayerNormCase(x));
    cases.push_back(LayerNormGradCase(x));
  }
  // All digits of a float are lost if the mean is not subtracted first.
  OpCase large_mean = LayerNormCase({9, 300});
  large_mean.first_input_offset = 1e4;
  cases.push_back(large_mean);
  return cases;
}

OpCase Random_layer_norm(CaseDraw& draw) { return LayerNormCase(RandomLayerRows(draw, 8)); }
OpCase Random_layer_norm_grad(CaseDraw& draw) {
  return LayerNormGradCase(RandomLayerRows(draw, 3));
}

namespace {

TEST(LayerNorm, NormalizesEachRow) {
  OpCase op_case = LayerNormCase({2, 2, 4});
  op_case.attributes.Set("epsilon", 0.0);
  for (const auto& outputs :
       RunAllKernels(op_case, {{{1, 3, 1, 3, 8, 4, 4, 8, 0, 0, -2, -2, 5, 5.5, 5, 5.5}, {}},
                               {{1, 1, 2, 2}, {}},
                               {{0, 0, 5, 6}, {}}})) {
    EXPECT_EQ(outputs[0].floats, (Floats{-1, 1, 3, 8, 1, -1, 3, 8, 1, 1, 3, 4, -1, 1, 3, 8}));
    EXPECT_EQ(outputs[1].floats, (Floats{2, 6, -1, 5.25}));
    EXPECT_EQ(outputs[2].floats, (Floats{1, 4, 1, 0.0625}));
  }
}

TEST(LayerNorm, MeasuresToTheLastDigits) {
  OpCase op_case = LayerNormCase({20, 3000});
  op_case.first_input_offset = 3;
  const PreparedCase prepared(op_case);
  auto inputs = RandomInputs(prepared, 1.0);
  const auto expected = RunReferenceOp<double>(prepared.op, prepared.call(), inputs);
  std::vector<OpData> data(3);
  for (size_t i = 0; i < 3; ++i) {
    data[i].floats.assign(inputs[i].numbers.begin(), inputs[i].numbers.end());
  }
  const auto actual = RunOp(op_case, data);
  for (size_t row = 0; row < 20; ++row) {
    const double mean = expected[1].numbers[row];
    const double variance = expected[2].numbers[row];
    EXPECT_NEAR(actual[1].floats[row], mean, 1.1 * kFloatRounding * mean);
    EXPECT_NEAR(actual[2].floats[row], variance, 4 * kFloatRounding * variance);
  }
}

TEST(LayerNorm, ConstantRowGivesBeta) {
  const auto outputs = RunOp(LayerNormCase({1, 600}),
                             {{Floats(600, 0.1F), {}}, {Floats(600, 2), {}}, {Floats(600, 7), {}}});
  EXPECT_EQ(outputs[1].floats, Floats{0.1F});
  EXPECT_EQ(outputs[2].floats, Floats{0});
  EXPECT_EQ(outputs[0].floats, Floats(600, 7));
}

TEST(LayerNorm, NanStaysInItsRow) {
  Floats x = {1, 2, 3, 4, 5, 6, 7, 8};
  x[1] = NAN;
  for (const auto& outputs :
       RunAllKernels(LayerNormCase({2, 4}), {{x, {}}, {Floats(4, 1), {}}, {Floats(4, 0), {}}})) {
    for (size_t i = 0; i < 8; ++i) EXPECT_EQ(std::isnan(outputs[0].floats[i]), i < 4) << i;
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(std::isnan(outputs[2].floats[i]), i == 0) << i;
  }
}

TEST(LayerNorm, NoChannelsGiveZeroStatistics) {
  for (const auto& outputs : RunAllKernels(LayerNormCase({2, 0}), {{}, {}, {}})) {
    EXPECT_EQ(outputs[1].floats, (Floats{0, 0}));
    EXPECT_EQ(outputs[2].floats, (Floats{0, 0}));
  }
}

// One bit of a row must not depend on the other rows: a batch can be cut into any parts.
TEST(LayerNorm, ARowHasTheSameBitsInEveryBatch) {
  const OpCase whole = LayerNormCase({40, 700});
  const OpCase alone = LayerNormCase({1, 700});
  const PreparedCase prepared(whole);
  const auto inputs = RandomInputs(prepared, 1.0);
  std::vector<OpData> data(3);
  for (size_t i = 0; i < 3; ++i) {
    data[i].floats.assign(inputs[i].numbers.begin(), inputs[i].numbers.end());
  }
  const auto expected = RunOp(whole, data);
  for (const std::ptrdiff_t row : {0, 23, 39}) {
    const auto part = [row](const Floats& rows) {
      return Floats(rows.begin() + row * 700, rows.begin() + (row + 1) * 700);
    };
    const auto actual = RunOp(alone, {{part(data[0].floats), {}}, data[1], data[2]});
    EXPECT_EQ(actual[0].floats, part(expected[0].floats));
  }
}

TEST(LayerNormGrad, FollowsTheFormula) {
  // Normalized x is -1, 1, -1, 1; gamma * dy is 2, 3, 4, -2 with mean 1.75, its product with
  // normalized x has mean -1.25: dx = (gamma * dy - 1.75 + 1.25 * normalized) / 2.
  OpCase op_case = LayerNormGradCase({1, 4});
  op_case.attributes.Set("epsilon", 0.0);
  for (const auto& outputs : RunAllKernels(
           op_case,
           {{{1, 5, 1, 5}, {}}, {{2, 1, 1, 1}, {}}, {{3}, {}}, {{4}, {}}, {{1, 3, 4, -2}, {}}})) {
    EXPECT_EQ(outputs[0].floats, (Floats{-0.5, 1.25, 0.5, -1.25}));
    EXPECT_EQ(outputs[1].floats, (Floats{-1, 3, -4, -2}));
    EXPECT_EQ(outputs[2].floats, (Floats{1, 3, 4, -2}));
  }
}

TEST(LayerNormGrad, NoRowsGiveZeroGradients) {
  for (const auto& outputs :
       RunAllKernels(LayerNormGradCase({0, 3}), {{}, {{1, 1, 1}, {}}, {}, {}, {}})) {
    EXPECT_EQ(outputs[1].floats, (Floats{0, 0, 0}));
    EXPECT_EQ(outputs[2].floats, (Floats{0, 0, 0}));
  }
}

TEST(LayerNormGrad, ScratchStaysSmall) {
  for (const int64_t rows : {4000, 400000}) {
    const OpCase op_case = LayerNormGradCase({rows, 512});
    const PreparedCase prepared(op_case);
    const size_t scratch = prepared.op.kernels()[0].scratch_bytes(prepared.call(), {.threads = 2});
    EXPECT_LE(scratch, size_t{300'000});
  }
}

TEST(LayerNorm, RejectsWrongShapes) {
  OpCase op_case = LayerNormCase({2, 2, 16});
  op_case.inputs[1] = Shape{3};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'gamma' has shape (3), expected (16)"));
  op_case = LayerNormCase({2, 2, 16});
  op_case.inputs[2] = Shape{1, 16};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'beta' has shape (1, 16), expected (16)"));
  EXPECT_THAT(ShapeError(LayerNormCase(Shape{16})), HasSubstr("at least 2 dimensions (..., C)"));
}

TEST(LayerNormGrad, RejectsWrongShapes) {
  const char* errors[] = {"at least 2 dimensions", "'gamma' has shape (5), expected (16)",
                          "'mean' has shape (5), expected (2, 3)",
                          "'variance' has shape (5), expected (2, 3)",
                          "'dy' has shape (5), expected (2, 3, 16)"};
  for (size_t input = 0; input < std::size(errors); ++input) {
    OpCase op_case = LayerNormGradCase({2, 3, 16});
    op_case.inputs[input] = Shape{5};
    EXPECT_THAT(ShapeError(op_case), HasSubstr(errors[input]));
  }
}

}  // namespace
}  // namespace thimble
