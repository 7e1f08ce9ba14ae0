#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/case_draw.h"
#include "tests/support/op_check.h"
#include "tests/support/run_op.h"

namespace thimble {
namespace {

using testing::HasSubstr;

OpCase BatchNormUpdateCase(int64_t channels, double momentum, int64_t count) {
  const Shape shape{channels};
  return {.op = "batch_norm_update",
          .inputs = {shape, shape, shape, shape},
          .attributes = {{"momentum", momentum}, {"count", count}},
          .positive_inputs = {1, 3}};
}

// From ghost batch norm: `parts` of `samples`, ten rows each.
OpCase MakePartsCase(int64_t channels, int64_t parts, int64_t samples) {
  OpCase op_case = BatchNormUpdateCase(channels, 0.1, 10 * samples);
  op_case.attributes.Set("samples", samples);
  op_case.inputs[2] = op_case.inputs[3] = Shape{parts, channels};
  op_case.shared_sum_size = static_cast<double>(parts);
  return op_case;
}

OpCase WithFactor(OpCase op_case) {
  op_case.inputs.push_back(Shape{1});
  return op_case;
}

}  // namespace

std::vector<OpCase> BatchNormUpdateCases() {
  return {BatchNormUpdateCase(1, 0.1, 100), BatchNormUpdateCase(17, 0.1, 2),
          BatchNormUpdateCase(64, 1.0, 1),  BatchNormUpdateCase(0, 0.1, 5),
          MakePartsCase(1, 1, 1),           MakePartsCase(17, 3, 7),
          MakePartsCase(130, 50, 100),      MakePartsCase(5, 4, 4),
          MakePartsCase(0, 2, 3),           WithFactor(MakePartsCase(17, 3, 7))};
}

OpCase Random_batch_norm_update(CaseDraw& draw) {
  const int64_t channels = draw.OneIn(24) ? 0 : draw.Size(300);
  if (draw.OneIn(2)) return BatchNormUpdateCase(channels, draw.Fraction(), draw.Between(1, 1000));
  const int64_t parts = draw.Between(1, 60);
  return MakePartsCase(channels, parts, draw.Between(parts, 200));
}

namespace {

TEST(BatchNormUpdate, AFactorOfZeroChangesNothing) {
  for (const float factor : {0.0F, 0.5F}) {
    const auto outputs = RunOp(WithFactor(BatchNormUpdateCase(1, 0.25, 3)),
                               {{{8}, {}}, {{2}, {}}, {{16}, {}}, {{4}, {}}, {{factor}, {}}});
    EXPECT_EQ(outputs[0].floats[0], factor == 0 ? 8 : 10);
    EXPECT_EQ(outputs[1].floats[0], factor == 0 ? 2 : 3);
  }
}

TEST(BatchNormUpdate, MovesTowardsTheBatch) {
  // The variance of 3 samples, unbiased: 4 * 3 / 2 = 6.
  const auto outputs =
      RunOp(BatchNormUpdateCase(1, 0.25, 3), {{{8}, {}}, {{2}, {}}, {{16}, {}}, {{4}, {}}});
  EXPECT_EQ(outputs[0].floats[0], 10);
  EXPECT_EQ(outputs[1].floats[0], 3);
}

TEST(BatchNormUpdate, OneSampleHasNothingToUnbias) {
  const auto outputs =
      RunOp(BatchNormUpdateCase(1, 0.5, 1), {{{0}, {}}, {{2}, {}}, {{0}, {}}, {{4}, {}}});
  EXPECT_EQ(outputs[1].floats[0], 3);
}

TEST(BatchNormUpdate, RejectsWrongShapes) {
  const char* names[] = {"", "'running_variance'", "'mean'", "'variance'"};
  for (size_t input = 1; input < 4; ++input) {
    OpCase op_case = BatchNormUpdateCase(3, 0.1, 2);
    op_case.inputs[input] = Shape{4};
    EXPECT_THAT(ShapeError(op_case), HasSubstr(names[input]));
  }
}

TEST(BatchNormUpdate, CombinesPartsByTheirSamples) {
  // Parts of 2 and 1 samples: mean (2 * 1 + 4) / 3 = 2; variance (2 * (5 + 1) + (2 + 4)) / 3 = 6.
  OpCase op_case = MakePartsCase(1, 2, 3);
  op_case.attributes.Set("momentum", 0.5);
  op_case.attributes.Set("count", int64_t{3});
  for (const auto& outputs :
       RunAllKernels(op_case, {{{8}, {}}, {{2}, {}}, {{1, 4}, {}}, {{5, 2}, {}}})) {
    EXPECT_FLOAT_EQ(outputs[0].floats[0], 5);
    EXPECT_FLOAT_EQ(outputs[1].floats[0], 5.5);  // (2 + 6 * 3 / 2) / 2
  }
}

TEST(BatchNormUpdate, LargeMeansDoNotCancel) {
  // Means of 1e4 and 1e4 + 2: their variance is 1. Squares of the means would have lost it.
  OpCase op_case = MakePartsCase(1, 2, 2);
  op_case.attributes.Set("momentum", 1.0);
  op_case.attributes.Set("count", int64_t{2});
  for (const auto& outputs :
       RunAllKernels(op_case, {{{0}, {}}, {{0}, {}}, {{1e4, 1e4 + 2}, {}}, {{0, 0}, {}}})) {
    EXPECT_EQ(outputs[0].floats[0], 1e4 + 1);
    EXPECT_EQ(outputs[1].floats[0], 2);
  }
}

TEST(BatchNormUpdate, OnePartIsTheBatch) {
  const std::vector<OpData> inputs = {
      {{8, 1}, {}}, {{2, 3}, {}}, {{16, 0.3F}, {}}, {{4, 0.7F}, {}}};
  const auto plain = RunOp(BatchNormUpdateCase(2, 0.1, 30), inputs);
  OpCase one_part = MakePartsCase(2, 1, 7);
  one_part.attributes.Set("count", int64_t{30});
  const auto part = RunOp(one_part, inputs);
  EXPECT_EQ(part[0].floats, plain[0].floats);
  EXPECT_EQ(part[1].floats, plain[1].floats);
}

TEST(BatchNormUpdate, RejectsWrongParts) {
  OpCase op_case = MakePartsCase(3, 2, 5);
  op_case.inputs[2] = op_case.inputs[3] = Shape{2, 4};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'mean' has shape (2, 4), expected (2, 3)"));
  op_case = MakePartsCase(3, 2, 5);
  op_case.inputs[3] = Shape{3, 3};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'variance' has shape (3, 3), expected (2, 3)"));
  EXPECT_THAT(ShapeError(MakePartsCase(3, 4, 3)), HasSubstr("samples is 3, expected at least 4"));
  EXPECT_THAT(ShapeError(MakePartsCase(3, 0, 3)),
              HasSubstr("the number of parts is 0, expected at least 1"));
}

TEST(BatchNormUpdate, RejectsNoSamples) {
  EXPECT_THAT(ShapeError(BatchNormUpdateCase(3, 0.1, 0)),
              HasSubstr("count is 0, expected at least 1"));
}

}  // namespace
}  // namespace thimble
