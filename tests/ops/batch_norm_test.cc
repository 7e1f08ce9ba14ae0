#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_check.h"
#include "tests/support/op_inputs.h"
#include "tests/support/run_op.h"
#include "tests/support/tolerance.h"

namespace thimble {
namespace {

using testing::HasSubstr;

// All rows are in the sums of a channel.
double NumRows(const Shape& x) { return static_cast<double>(x.elements() / x[x.rank() - 1]); }

OpCase BatchNormCase(const Shape& x) {
  const Shape channels{x[x.rank() - 1]};
  return {.op = "batch_norm",
          .inputs = {x, channels, channels},
          .positive_inputs = {1},
          .shared_sum_size = NumRows(x)};
}

OpCase BatchNormGradCase(const Shape& x) {
  const Shape channels{x[x.rank() - 1]};
  return {.op = "batch_norm_grad",
          .inputs = {x, channels, channels, channels, channels, x},
          .positive_inputs = {1, 4},
          .shared_sum_size = NumRows(x)};
}

OpCase MakeGradAddCase(const Shape& x) {
  OpCase op_case = BatchNormGradCase(x);
  op_case.op = "batch_norm_grad_add";
  op_case.inputs.push_back(x);
  return op_case;
}

}  // namespace

std::vector<OpCase> BatchNormCases() {
  std::vector<OpCase> cases;
  for (const Shape& x :
       {Shape{2, 1}, Shape{5, 3}, Shape{3, 5, 7, 1}, Shape{3, 5, 7, 3}, Shape{2, 4, 5, 17},
        Shape{2, 3, 3, 33}, Shape{2, 16, 16, 64}, Shape{2, 5, 7, 300}, Shape{3, 7, 7, 32},
        Shape{2, 5, 5, 113}, Shape{0, 4, 4, 3}, Shape{2, 40, 40, 7}, Shape{4, 48, 48, 16},
        Shape{3, 9, 9, 136}}) {
    for (OpCase op_case : {BatchNormCase(x), BatchNormGradCase(x), MakeGradAddCase(x)}) {
      cases.push_back(op_case);
      op_case.attributes = {{"relu", int64_t{1}}};
      cases.push_back(op_case);
    }
  }
  // All digits of a float are lost if the mean is not subtracted first.
  OpCase large_mean = BatchNormCase({2, 17, 19, 20});
  large_mean.first_input_offset = 1e4;
  cases.push_back(large_mean);
  return cases;
}

namespace {

TEST(BatchNorm, NormalizesEachChannel) {
  OpCase op_case = BatchNormCase({2, 2});
  op_case.attributes = {{"epsilon", 0.0}};
  for (const auto& outputs :
       RunAllKernels(op_case, {{{1, 10, 3, 50}, {}}, {{1, 2}, {}}, {{0, 5}, {}}})) {
    EXPECT_EQ(outputs[0].floats, (std::vector<float>{-1, 3, 1, 7}));
    EXPECT_EQ(outputs[1].floats, (std::vector<float>{2, 30}));
    EXPECT_EQ(outputs[2].floats, (std::vector<float>{1, 400}));
  }
}

TEST(BatchNorm, MeasuresVarianceBesideLargeMean) {
  // Alternating 1e4 ± 1: variance exactly 1; a sum of squares in floats could give anything.
  std::vector<float> x(4000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = i % 2 == 0 ? 9999.0F : 10001.0F;
  const auto outputs = RunOp(BatchNormCase({4000, 1}), {{x, {}}, {{1}, {}}, {{0}, {}}});
  EXPECT_EQ(outputs[1].floats[0], 10000.0F);
  EXPECT_EQ(outputs[2].floats[0], 1.0F);
}

TEST(BatchNorm, MeasuresToTheLastDigits) {
  const OpCase op_case = BatchNormCase({4, 48, 48, 16});
  const PreparedCase prepared(op_case);
  auto inputs = RandomInputs(prepared, 1.0);
  const auto expected = RunReferenceOp<double>(prepared.op, prepared.call(), inputs);
  std::vector<OpData> data(3);
  for (size_t i = 0; i < 3; ++i) {
    data[i].floats.assign(inputs[i].numbers.begin(), inputs[i].numbers.end());
  }
  const auto actual = RunOp(op_case, data);
  for (size_t c = 0; c < 16; ++c) {
    const double variance = expected[2].numbers[c];
    EXPECT_NEAR(actual[1].floats[c], expected[1].numbers[c], 2 * kFloatRounding);
    EXPECT_NEAR(actual[2].floats[c], variance, 4 * kFloatRounding * variance);
  }
}

TEST(BatchNorm, SurvivesAnOutlierInFront) {
  // The first row is a first estimate of the mean; a bad estimate must not spoil the variance.
  std::vector<float> x(1001);
  x[0] = 1e6F;
  for (size_t i = 1; i < x.size(); ++i) x[i] = i % 2 == 0 ? -1.0F : 1.0F;
  const auto outputs = RunOp(BatchNormCase({1001, 1}), {{x, {}}, {{1}, {}}, {{0}, {}}});
  const double mean = 1e6 / 1001;
  const double variance = (1e12 + 1000) / 1001 - mean * mean;
  EXPECT_NEAR(outputs[2].floats[0], variance, variance * 1e-5);
}

TEST(BatchNorm, ConstantChannelGivesBeta) {
  const auto outputs =
      RunOp(BatchNormCase({300, 1}), {{std::vector<float>(300, 0.1F), {}}, {{1}, {}}, {{7}, {}}});
  EXPECT_EQ(outputs[2].floats[0], 0);
  for (float y : outputs[0].floats) EXPECT_NEAR(y, 7, 1e-5);
}

TEST(BatchNorm, NanStaysInItsChannel) {
  for (const auto& outputs :
       RunAllKernels(BatchNormCase({2, 2}), {{{NAN, 10, 3, 50}, {}}, {{1, 1}, {}}, {{0, 0}, {}}})) {
    EXPECT_TRUE(std::isnan(outputs[0].floats[0]) && std::isnan(outputs[0].floats[2]));
    EXPECT_TRUE(std::isnan(outputs[1].floats[0]) && std::isnan(outputs[2].floats[0]));
    EXPECT_EQ(outputs[1].floats[1], 30);
    EXPECT_FALSE(std::isnan(outputs[0].floats[1]));
  }
}

TEST(BatchNorm, ItsStatisticsAreEnoughToComputeItAgain) {
  // With a mean that no float is close to.
  std::vector<float> x(3 * 1001);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 1e5F + static_cast<float>(i % 7) / 64;
  const OpData gamma{{0.7F, 1.3F, -2}, {}};
  const OpData beta{{0.1F, 0, -0.3F}, {}};
  const auto norm = RunOp(BatchNormCase({1001, 3}), {{x, {}}, gamma, beta});
  const Shape channels{3};
  const auto again = RunOp(
      {.op = "batch_norm_eval", .inputs = {Shape{1001, 3}, channels, channels, channels, channels}},
      {{x, {}}, gamma, beta, norm[1], norm[2]});
  EXPECT_EQ(again[0].floats, norm[0].floats);
}

TEST(BatchNorm, NoRowsGiveZeroStatistics) {
  for (const auto& outputs :
       RunAllKernels(BatchNormCase({0, 2}), {{}, {{1, 1}, {}}, {{0, 0}, {}}})) {
    EXPECT_EQ(outputs[1].floats, (std::vector<float>{0, 0}));
    EXPECT_EQ(outputs[2].floats, (std::vector<float>{0, 0}));
  }
}

TEST(BatchNorm, ScratchStaysBounded) {
  // 100 images of 32 x 32 x 32: a hundredth of the activation at most.
  const OpCase op_case = BatchNormCase({100, 32, 32, 32});
  const PreparedCase prepared(op_case);
  const size_t scratch = prepared.op.kernels()[0].scratch_bytes(prepared.call(), {});
  EXPECT_LE(scratch, op_case.inputs[0].elements() * sizeof(float) / 100);
}

TEST(BatchNorm, RejectsWrongShapes) {
  OpCase op_case = BatchNormCase({2, 2, 16});
  op_case.inputs[1] = Shape{3};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'gamma' has shape (3), expected (16)"));
  op_case = BatchNormCase({2, 2, 16});
  op_case.inputs[2] = Shape{1, 16};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'beta' has shape (1, 16), expected (16)"));
  EXPECT_THAT(ShapeError(BatchNormCase(Shape{16})), HasSubstr("at least 2 dimensions (..., C)"));
}

TEST(BatchNormGradAdd, RejectsWrongShapes) {
  OpCase op_case = MakeGradAddCase({2, 2, 16});
  op_case.inputs[6] = Shape{2, 16, 2};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'other' has shape (2, 16, 2)"));
  op_case = MakeGradAddCase({2, 2, 16});
  op_case.inputs[3] = Shape{5};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'mean'"));
}

TEST(BatchNormGrad, RejectsWrongShapes) {
  const char* names[] = {"", "'gamma'", "'beta'", "'mean'", "'variance'", "'dy'"};
  for (size_t input = 1; input < 6; ++input) {
    OpCase op_case = BatchNormGradCase({2, 2, 16});
    op_case.inputs[input] = Shape{5};
    EXPECT_THAT(ShapeError(op_case), HasSubstr(names[input]));
  }
}

}  // namespace
}  // namespace thimble
