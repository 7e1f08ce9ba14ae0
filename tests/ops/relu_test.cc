#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/case_draw.h"
#include "tests/support/op_check.h"
#include "tests/support/run_op.h"

namespace thimble {

std::vector<OpCase> ReluCases() {
  std::vector<OpCase> cases;
  for (const Shape& shape : {Shape{1}, Shape{0, 3}, Shape{17}, Shape{3, 5, 7, 33}, Shape{40000}}) {
    cases.push_back({.op = "relu", .inputs = {shape}});
    cases.push_back({.op = "relu_grad", .inputs = {shape, shape}});
  }
  return cases;
}

OpCase Random_relu(CaseDraw& draw) { return {.op = "relu", .inputs = {draw.AnyShape()}}; }

OpCase Random_relu_grad(CaseDraw& draw) {
  const Shape shape = draw.AnyShape();
  return {.op = "relu_grad", .inputs = {shape, shape}};
}

namespace {

using testing::HasSubstr;

TEST(Relu, KeepsPositiveNumbers) {
  const OpCase op_case{.op = "relu", .inputs = {Shape{4}}};
  for (const auto& outputs : RunAllKernels(op_case, {{{-1, 0, 2, INFINITY}, {}}})) {
    EXPECT_EQ(outputs[0].floats, (std::vector<float>{0, 0, 2, INFINITY}));
  }
}

TEST(Relu, PassesNan) {
  // Long enough for NaN in whole vectors and in the tail.
  const OpCase op_case{.op = "relu", .inputs = {Shape{19}}};
  for (const auto& outputs : RunAllKernels(op_case, {{std::vector<float>(19, NAN), {}}})) {
    for (float y : outputs[0].floats) EXPECT_TRUE(std::isnan(y));
  }
}

TEST(ReluGrad, PassesWhereOutputIsPositiveOrNan) {
  const OpCase op_case{.op = "relu_grad", .inputs = {Shape{4}, Shape{4}}};
  for (const auto& outputs : RunAllKernels(op_case, {{{0, 1, NAN, -1}, {}}, {{5, 6, 7, 8}, {}}})) {
    EXPECT_EQ(outputs[0].floats, (std::vector<float>{0, 6, 7, 0}));
  }
}

TEST(ReluGrad, HidesNanOfGradientWhereOff) {
  const OpCase op_case{.op = "relu_grad", .inputs = {Shape{2}, Shape{2}}};
  for (const auto& outputs : RunAllKernels(op_case, {{{0, 1}, {}}, {{NAN, NAN}, {}}})) {
    EXPECT_EQ(outputs[0].floats[0], 0);
    EXPECT_TRUE(std::isnan(outputs[0].floats[1]));
  }
}

TEST(ReluGrad, RejectsDifferentShapes) {
  EXPECT_THAT(ShapeError({.op = "relu_grad", .inputs = {Shape{4}, Shape{5}}}),
              HasSubstr("'dy' has shape (5), expected (4)"));
}

}  // namespace
}  // namespace thimble
