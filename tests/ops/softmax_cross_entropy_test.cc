#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>
#include <cmath>

#include "tests/support/case_draw.h"
#include "tests/support/op_check.h"
#include "tests/support/run_op.h"

namespace thimble {
namespace {

using testing::HasSubstr;

OpCase SoftmaxCrossEntropyCase(int64_t rows, int64_t classes, double divisor) {
  return {.op = "softmax_cross_entropy",
          .inputs = {Shape{rows, classes}, Shape{rows}},
          .attributes = {{"divisor", divisor}},
          .integer_bound = static_cast<int>(classes),
          .shared_sum_size = static_cast<double>(classes)};
}

OpCase SoftmaxCrossEntropyGradCase(int64_t rows, int64_t classes, double divisor) {
  OpCase op_case = SoftmaxCrossEntropyCase(rows, classes, divisor);
  op_case.op = "softmax_cross_entropy_grad";
  op_case.inputs.push_back(Shape{1});
  return op_case;
}

int64_t RandomRows(CaseDraw& draw) { return draw.OneIn(24) ? 0 : draw.Size(150); }

}  // namespace

std::vector<OpCase> SoftmaxCrossEntropyCases() {
  std::vector<OpCase> cases;
  for (const auto& [rows, classes] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {1, 2}, {7, 10}, {100, 10}, {3, 17}, {5, 33}, {64, 100}, {700, 17}, {2, 4100}}) {
    cases.push_back(SoftmaxCrossEntropyCase(rows, classes, static_cast<double>(rows)));
    cases.push_back(SoftmaxCrossEntropyGradCase(rows, classes, static_cast<double>(rows)));
  }
  cases.push_back(SoftmaxCrossEntropyCase(0, 10, 3));
  cases.push_back(SoftmaxCrossEntropyGradCase(0, 10, 3));
  OpCase shifted = SoftmaxCrossEntropyCase(20, 10, 1);
  shifted.first_input_offset = 1000;  // exp overflows unless the maximum is subtracted
  cases.push_back(shifted);
  return cases;
}

OpCase Random_softmax_cross_entropy(CaseDraw& draw) {
  const int64_t rows = RandomRows(draw);
  return SoftmaxCrossEntropyCase(rows, draw.Size(300), static_cast<double>(rows + 1));
}

OpCase Random_softmax_cross_entropy_grad(CaseDraw& draw) {
  const int64_t rows = RandomRows(draw);
  const auto divisor = static_cast<double>(rows + 1);
  OpCase op_case = SoftmaxCrossEntropyGradCase(rows, draw.Size(300), divisor);
  // The formula subtracts 1 from the label's probability, times dloss, which is standard normal.
  op_case.cancelled_size = 5 / divisor;
  return op_case;
}

namespace {

TEST(SoftmaxCrossEntropy, EqualLogitsGiveLogOfClasses) {
  for (const auto& outputs : RunAllKernels(SoftmaxCrossEntropyCase(2, 4, 2),
                                           {{{3, 3, 3, 3, -1, -1, -1, -1}, {}}, {{}, {0, 3}}})) {
    EXPECT_FLOAT_EQ(outputs[0].floats[0], std::log(4.0F));
    // Among equal logits the first counts as the answer.
    EXPECT_EQ(outputs[1].integers[0], 1);
  }
}

TEST(SoftmaxCrossEntropy, LargeLogitsDoNotOverflow) {
  for (const auto& outputs :
       RunAllKernels(SoftmaxCrossEntropyCase(1, 3, 1), {{{3e38F, -3e38F, 0}, {}}, {{}, {0}}})) {
    EXPECT_EQ(outputs[0].floats[0], 0);
    EXPECT_EQ(outputs[1].integers[0], 1);
  }
}

TEST(SoftmaxCrossEntropy, SureRowsKeepTheirTinyLossAndGradient) {
  const float tiny = std::exp(-20.0F);
  const auto loss = RunOp(SoftmaxCrossEntropyCase(1, 2, 1), {{{20, 0}, {}}, {{}, {0}}});
  EXPECT_FLOAT_EQ(loss[0].floats[0], tiny);
  const auto gradient =
      RunOp(SoftmaxCrossEntropyGradCase(1, 2, 1), {{{20, 0}, {}}, {{}, {0}}, {{1}, {}}});
  EXPECT_FLOAT_EQ(gradient[0].floats[0], -tiny);
  EXPECT_FLOAT_EQ(gradient[0].floats[1], tiny);
}

TEST(SoftmaxCrossEntropy, ImpossibleClassesAreAllowed) {
  for (const auto& outputs :
       RunAllKernels(SoftmaxCrossEntropyCase(1, 3, 1), {{{0, -INFINITY, 0}, {}}, {{}, {0}}})) {
    EXPECT_FLOAT_EQ(outputs[0].floats[0], std::log(2.0F));
  }
}

TEST(SoftmaxCrossEntropy, NanAndInfinityMakeTheLossNan) {
  for (float bad : {NAN, INFINITY}) {
    for (size_t place : {0, 1, 16}) {
      std::vector<float> logits(17, 0.0F);
      logits[place] = bad;
      for (const auto& outputs :
           RunAllKernels(SoftmaxCrossEntropyCase(1, 17, 1), {{logits, {}}, {{}, {2}}})) {
        EXPECT_TRUE(std::isnan(outputs[0].floats[0])) << bad << " at " << place;
        EXPECT_EQ(outputs[1].integers[0], 0);
      }
      for (const auto& outputs : RunAllKernels(SoftmaxCrossEntropyGradCase(1, 17, 1),
                                               {{logits, {}}, {{}, {2}}, {{1}, {}}})) {
        for (float dx : outputs[0].floats) EXPECT_TRUE(std::isnan(dx)) << bad << " at " << place;
      }
    }
  }
}

TEST(SoftmaxCrossEntropy, LabelOutOfRangeIsWrongAndNan) {
  for (int label : {-1, 3, INT_MAX, INT_MIN}) {
    const OpData logits{{0, 1, 2, 0, 1, 2}, {}};
    for (const auto& outputs :
         RunAllKernels(SoftmaxCrossEntropyCase(2, 3, 1), {logits, {{}, {label, 2}}})) {
      EXPECT_TRUE(std::isnan(outputs[0].floats[0]));
      EXPECT_EQ(outputs[1].integers[0], 1);
    }
    for (const auto& outputs : RunAllKernels(SoftmaxCrossEntropyGradCase(2, 3, 1),
                                             {logits, {{}, {label, 2}}, {{1}, {}}})) {
      EXPECT_TRUE(std::isnan(outputs[0].floats[0]));
      EXPECT_FALSE(std::isnan(outputs[0].floats[3]));
    }
  }
}

TEST(SoftmaxCrossEntropyGrad, ScalesWithArrivingGradient) {
  const OpData logits{{0, 0}, {}};
  for (const auto& outputs :
       RunAllKernels(SoftmaxCrossEntropyGradCase(1, 2, 4), {logits, {{}, {1}}, {{8}, {}}})) {
    EXPECT_EQ(outputs[0].floats, (std::vector<float>{1, -1}));
  }
}

TEST(SoftmaxCrossEntropy, RejectsWrongShapes) {
  OpCase op_case = SoftmaxCrossEntropyCase(3, 10, 1);
  op_case.inputs[1] = Shape{4};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'labels' has shape (4), expected (3)"));
  op_case = SoftmaxCrossEntropyCase(3, 10, 1);
  op_case.inputs[0] = Shape{3, 10, 1};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("expected 2 dimensions (B, N)"));
  op_case = SoftmaxCrossEntropyGradCase(3, 10, 1);
  op_case.inputs[2] = Shape{3};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'dloss' has shape (3), expected (1)"));
}

TEST(SoftmaxCrossEntropy, RejectsDivisorThatIsNotPositive) {
  EXPECT_THAT(ShapeError(SoftmaxCrossEntropyCase(3, 10, 0)), HasSubstr("divisor is 0"));
  EXPECT_THAT(ShapeError(SoftmaxCrossEntropyGradCase(3, 10, NAN)), HasSubstr("divisor is nan"));
}

}  // namespace
}  // namespace thimble
