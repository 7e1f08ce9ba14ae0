#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/ops/group_norm_cases.h"
#include "tests/support/case_draw.h"
#include "tests/support/op_check.h"
#include "tests/support/op_inputs.h"
#include "tests/support/run_op.h"
#include "tests/support/tolerance.h"

namespace thimble {
namespace {

using testing::HasSubstr;

using Floats = std::vector<float>;

// Very few normalized elements are only a sign and rounding errors, which changing the inputs does
// not show: smaller groups are not drawn.
constexpr int64_t kMeasuredElements = 8;
constexpr int64_t kElementsOfGradient = 3;

OpCase RandomCase(OpCase (*make)(const Shape&, int64_t groups), CaseDraw& draw,
                  int64_t least_elements = 0) {
  for (;;) {
    const Shape x = draw.AnyShape(2);
    int64_t groups = draw.Between(1, std::max<int64_t>(1, Channels(x)));
    while (Channels(x) % groups != 0) --groups;
    const int64_t elements = x.elements() == 0 ? 0 : x.elements() / x[0] / groups;
    if (elements > 0 && elements < least_elements) continue;
    const OpCase op_case = make(x, groups);
    return draw.OneIn(2) ? WithRelu(op_case) : op_case;
  }
}

}  // namespace

std::vector<OpCase> GroupNormCases() {
  std::vector<OpCase> cases;
  for (const auto& [x, groups] : kGroupedShapes) {
    for (const OpCase& op_case : {GroupNormCase(x, groups), GroupNormApplyCase(x, groups),
                                  GroupNormGradCase(x, groups), GroupNormGradAddCase(x, groups)}) {
      cases.push_back(op_case);
      cases.push_back(WithRelu(op_case));
    }
  }
  // All digits of a float are lost if the mean is not subtracted first.
  OpCase large_mean = GroupNormCase({2, 17, 19, 20}, 5);
  large_mean.first_input_offset = 1e4;
  cases.push_back(large_mean);
  return cases;
}

OpCase Random_group_norm(CaseDraw& draw) {
  return RandomCase(&GroupNormCase, draw, kMeasuredElements);
}
OpCase Random_group_norm_apply(CaseDraw& draw) { return RandomCase(&GroupNormApplyCase, draw); }
OpCase Random_group_norm_grad(CaseDraw& draw) {
  return RandomCase(&GroupNormGradCase, draw, kElementsOfGradient);
}
OpCase Random_group_norm_grad_add(CaseDraw& draw) {
  return RandomCase(&GroupNormGradAddCase, draw, kElementsOfGradient);
}

namespace {

TEST(GroupNorm, NormalizesEachGroupOfEachSample) {
  OpCase op_case = GroupNormCase({2, 1, 4}, 2);
  op_case.attributes.Set("epsilon", 0.0);
  for (const auto& outputs : RunAllKernels(
           op_case,
           {{{1, 3, 10, 50, 5, 5.5, -2, 2}, {}}, {{1, 1, 2, 2}, {}}, {{0, 0, 5, 6}, {}}})) {
    EXPECT_EQ(outputs[0].floats, (Floats{-1, 1, 3, 8, -1, 1, 3, 8}));
    EXPECT_EQ(outputs[1].floats, (Floats{2, 30, 5.25, 0}));
    EXPECT_EQ(outputs[2].floats, (Floats{1, 400, 0.0625, 4}));
  }
}

TEST(GroupNorm, MeasuresToTheLastDigits) {
  const OpCase op_case = GroupNormCase({3, 48, 48, 16}, 2);
  const PreparedCase prepared(op_case);
  auto inputs = RandomInputs(prepared, 1.0);
  const auto expected = RunReferenceOp<double>(prepared.op, prepared.call(), inputs);
  std::vector<OpData> data(3);
  for (size_t i = 0; i < 3; ++i) {
    data[i].floats.assign(inputs[i].numbers.begin(), inputs[i].numbers.end());
  }
  const auto actual = RunOp(op_case, data);
  for (size_t i = 0; i < 6; ++i) {
    const double variance = expected[2].numbers[i];
    EXPECT_NEAR(actual[1].floats[i], expected[1].numbers[i], 2 * kFloatRounding);
    EXPECT_NEAR(actual[2].floats[i], variance, 4 * kFloatRounding * variance);
  }
}

TEST(GroupNorm, MeasuresVarianceBesideLargeMeansOfItsChannels) {
  // 1e4 and -1e4 +- 1: the variance is 1e8 + 1, within a float's rounding.
  Floats x(2 * 3000);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = (i % 2 == 0 ? 1e4F : -1e4F) + (i % 4 < 2 ? 1.0F : -1.0F);
  }
  const auto outputs = RunOp(GroupNormCase({1, 3000, 2}, 1), {{x, {}}, {{1, 1}, {}}, {{0, 0}, {}}});
  EXPECT_EQ(outputs[1].floats[0], 0);
  EXPECT_EQ(outputs[2].floats[0], static_cast<float>(1e8 + 1));
}

TEST(GroupNorm, ConstantGroupGivesBeta) {
  const auto outputs =
      RunOp(GroupNormCase({1, 300, 2}, 1), {{Floats(600, 0.1F), {}}, {{1, 2}, {}}, {{7, -3}, {}}});
  EXPECT_EQ(outputs[2].floats[0], 0);
  for (size_t i = 0; i < 600; ++i) EXPECT_NEAR(outputs[0].floats[i], i % 2 == 0 ? 7 : -3, 1e-5);
}

TEST(GroupNorm, NanStaysInItsGroupOfItsSample) {
  Floats x = {1, 2, 3, 4, 5, 6, 7, 8};
  x[1] = NAN;
  for (const auto& outputs : RunAllKernels(WithRelu(GroupNormCase({2, 1, 4}, 2)),
                                           {{x, {}}, {{1, 1, 1, 1}, {}}, {{0, 0, 0, 0}, {}}})) {
    for (size_t i = 0; i < 8; ++i) EXPECT_EQ(std::isnan(outputs[0].floats[i]), i < 2) << i;
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(std::isnan(outputs[2].floats[i]), i == 0) << i;
  }
}

TEST(GroupNorm, NoRowsGiveZeroStatistics) {
  for (const auto& outputs :
       RunAllKernels(GroupNormCase({2, 0, 2}, 1), {{}, {{1, 1}, {}}, {{0, 0}, {}}})) {
    EXPECT_EQ(outputs[1].floats, (Floats{0, 0}));
    EXPECT_EQ(outputs[2].floats, (Floats{0, 0}));
  }
}

TEST(GroupNorm, ScratchStaysBounded) {
  // 100 images of 32 x 32 x 32, forward and backward: a fiftieth of the activation at most.
  const Shape x{100, 32, 32, 32};
  for (const OpCase& op_case : {GroupNormCase(x, 4), GroupNormGradAddCase(x, 4)}) {
    const PreparedCase prepared(op_case);
    const size_t scratch = prepared.op.kernels()[0].scratch_bytes(prepared.call(), {});
    EXPECT_LE(scratch, static_cast<size_t>(x.elements()) * sizeof(float) / 50);
  }
}

TEST(GroupNorm, OneGroupPerSampleOfARowIsLayerNorm) {
  OpCase op_case = GroupNormCase({2, 4}, 1);
  op_case.attributes.Set("epsilon", 0.0);
  for (const auto& outputs : RunAllKernels(
           op_case, {{{1, 3, 1, 3, 8, 4, 4, 8}, {}}, {Floats(4, 1), {}}, {Floats(4, 0), {}}})) {
    EXPECT_EQ(outputs[0].floats, (Floats{-1, 1, -1, 1, 1, -1, -1, 1}));
  }
}

TEST(GroupNorm, RejectsWrongShapesAndGroups) {
  OpCase op_case = GroupNormCase({2, 2, 16}, 4);
  op_case.inputs[1] = Shape{3};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'gamma' has shape (3), expected (16)"));
  op_case = GroupNormCase({2, 2, 16}, 4);
  op_case.inputs[2] = Shape{1, 16};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'beta' has shape (1, 16), expected (16)"));
  EXPECT_THAT(ShapeError(GroupNormCase(Shape{16}, 4)), HasSubstr("at least 2 dimensions (..., C)"));
  EXPECT_THAT(ShapeError(GroupNormCase({2, 16}, 5)),
              HasSubstr("16 channels cannot be divided into 5 equal groups"));
  EXPECT_THAT(ShapeError(GroupNormCase({2, 16}, 32)), HasSubstr("cannot be divided into 32"));
  for (const int64_t groups : {int64_t{0}, int64_t{-4}}) {
    op_case = GroupNormCase({2, 16}, 1);
    op_case.attributes.Set("groups", groups);
    EXPECT_THAT(ShapeError(op_case), HasSubstr("expected at least 1"));
  }
}

TEST(GroupNormApply, RejectsWrongShapes) {
  OpCase op_case = GroupNormApplyCase({2, 3, 16}, 4);
  op_case.inputs[3] = Shape{4};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'mean' has shape (4), expected (2, 4)"));
  op_case = GroupNormApplyCase({2, 3, 16}, 4);
  op_case.inputs[4] = Shape{4, 2};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'variance' has shape (4, 2), expected (2, 4)"));
}

TEST(GroupNormGrad, RejectsWrongShapes) {
  const char* names[] = {"", "'gamma'", "'beta'", "'mean'", "'variance'", "'dy'", "'other'"};
  for (size_t input = 1; input < 7; ++input) {
    OpCase op_case =
        input == 6 ? GroupNormGradAddCase({2, 2, 16}, 4) : GroupNormGradCase({2, 2, 16}, 4);
    op_case.inputs[input] = Shape{5};
    EXPECT_THAT(ShapeError(op_case), HasSubstr(names[input]));
  }
}

}  // namespace
}  // namespace thimble
