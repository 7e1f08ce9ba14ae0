#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_check.h"
#include "tests/support/run_op.h"

namespace thimble {
namespace {

using testing::HasSubstr;

OpCase BatchNormEvalCase(const Shape& x) {
  const Shape channels{x[x.rank() - 1]};
  return {.op = "batch_norm_eval",
          .inputs = {x, channels, channels, channels, channels},
          .positive_inputs = {1, 4},
          .constant_inputs = {3, 4}};
}

OpCase BatchNormEvalGradCase(const Shape& x) {
  const Shape channels{x[x.rank() - 1]};
  return {.op = "batch_norm_eval_grad",
          .inputs = {x, channels, channels, channels, channels, x},
          .positive_inputs = {1, 4}};
}

}  // namespace

std::vector<OpCase> BatchNormEvalCases() {
  std::vector<OpCase> cases;
  for (const Shape& x :
       {Shape{1, 1}, Shape{5, 3}, Shape{2, 4, 5, 17}, Shape{2, 3, 3, 33}, Shape{2, 16, 16, 64},
        Shape{2, 5, 7, 300}, Shape{0, 4, 4, 3}, Shape{4, 48, 48, 16}}) {
    for (OpCase op_case : {BatchNormEvalCase(x), BatchNormEvalGradCase(x)}) {
      cases.push_back(op_case);
      op_case.attributes = {{"relu", int64_t{1}}};
      cases.push_back(op_case);
    }
  }
  return cases;
}

namespace {

TEST(BatchNormEval, UsesRunningStatistics) {
  OpCase op_case = BatchNormEvalCase({2, 2});
  op_case.attributes = {{"epsilon", 0.0}};
  for (const auto& outputs : RunAllKernels(
           op_case,
           {{{1, 10, 3, 50}, {}}, {{1, 2}, {}}, {{0, 5}, {}}, {{2, 30}, {}}, {{4, 64}, {}}})) {
    EXPECT_EQ(outputs[0].floats, (std::vector<float>{-0.5, 0, 0.5, 10}));
  }
}

TEST(BatchNormEval, PassesNanOfOneElementOnly) {
  for (const auto& outputs :
       RunAllKernels(BatchNormEvalCase({2, 1}),
                     {{{NAN, 1}, {}}, {{1}, {}}, {{0}, {}}, {{0}, {}}, {{1}, {}}})) {
    EXPECT_TRUE(std::isnan(outputs[0].floats[0]));
    EXPECT_FALSE(std::isnan(outputs[0].floats[1]));
  }
}

TEST(BatchNormEval, RejectsWrongShapes) {
  const char* names[] = {"'x'", "'gamma'", "'beta'", "'running_mean'", "'running_variance'"};
  for (size_t input = 0; input < 5; ++input) {
    OpCase op_case = BatchNormEvalCase({2, 2, 16});
    op_case.inputs[input] = Shape{5};
    EXPECT_THAT(ShapeError(op_case), HasSubstr(names[input]));
  }
}

TEST(BatchNormEvalGrad, RejectsWrongShapes) {
  for (size_t input = 1; input < 6; ++input) {
    OpCase op_case = BatchNormEvalGradCase({2, 2, 16});
    op_case.inputs[input] = Shape{5};
    EXPECT_THAT(ShapeError(op_case), HasSubstr("has shape (5), expected"));
  }
}

}  // namespace
}  // namespace thimble
