#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/case_draw.h"
#include "tests/support/op_check.h"
#include "tests/support/run_op.h"

namespace thimble {

std::vector<OpCase> AddCases() {
  std::vector<OpCase> cases;
  for (const Shape& shape : {Shape{1}, Shape{0, 3}, Shape{17}, Shape{3, 5, 7, 33}, Shape{40000}}) {
    cases.push_back({.op = "add", .inputs = {shape, shape}});
  }
  return cases;
}

OpCase Random_add(CaseDraw& draw) {
  const Shape shape = draw.AnyShape();
  return {.op = "add", .inputs = {shape, shape}};
}

namespace {

using testing::HasSubstr;

TEST(Add, AddsNumbers) {
  const OpCase op_case{.op = "add", .inputs = {Shape{3}, Shape{3}}};
  for (const auto& outputs : RunAllKernels(op_case, {{{1, 2, 3}, {}}, {{10, 20, 30}, {}}})) {
    EXPECT_EQ(outputs[0].floats, (std::vector<float>{11, 22, 33}));
  }
}

TEST(Add, PassesNanAndInfinity) {
  const OpCase op_case{.op = "add", .inputs = {Shape{2}, Shape{2}}};
  for (const auto& outputs : RunAllKernels(op_case, {{{NAN, 1}, {}}, {{1, INFINITY}, {}}})) {
    EXPECT_TRUE(std::isnan(outputs[0].floats[0]));
    EXPECT_EQ(outputs[0].floats[1], INFINITY);
  }
}

TEST(Add, RejectsDifferentShapes) {
  EXPECT_THAT(ShapeError({.op = "add", .inputs = {Shape{2, 3}, Shape{3, 2}}}),
              HasSubstr("'b' has shape (3, 2), expected (2, 3)"));
}

TEST(Add, DoesNotBroadcast) {
  EXPECT_THAT(ShapeError({.op = "add", .inputs = {Shape{2, 3}, Shape{1}}}), HasSubstr("'b'"));
}

}  // namespace
}  // namespace thimble
