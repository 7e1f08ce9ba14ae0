#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/case_draw.h"
#include "tests/support/op_check.h"
#include "tests/support/run_op.h"

namespace thimble {
namespace {

OpCase ClearCase(const Shape& shape) { return {.op = "clear", .inputs = {shape}}; }

// What memory may hold that nothing has written, also where y overwrites x.
OpCase ClearNansCase(const Shape& shape) {
  OpCase op_case = ClearCase(shape);
  op_case.given_inputs[0] = std::vector<double>(static_cast<size_t>(shape.elements()), NAN);
  return op_case;
}

}  // namespace

// One, several and no elements; several chunks.
std::vector<OpCase> ClearCases() {
  std::vector<OpCase> cases;
  for (const Shape& shape :
       {Shape{1}, Shape{7}, Shape{3, 5}, Shape{2, 0, 4}, Shape{3, 2, 5, 17}, Shape{2, 20011}}) {
    cases.push_back(ClearCase(shape));
    cases.push_back(ClearNansCase(shape));
  }
  return cases;
}

OpCase Random_clear(CaseDraw& draw) {
  const Shape shape = draw.AnyShape();
  return draw.OneIn(2) ? ClearCase(shape) : ClearNansCase(shape);
}

namespace {

// All bits, so that -0 is not taken for 0.
TEST(Clear, WritesPlainZerosOverAnything) {
  for (const auto& outputs :
       RunAllKernels(ClearCase({2, 3}), {{{NAN, -NAN, INFINITY, -INFINITY, -0.0F, 5}, {}}})) {
    ASSERT_EQ(outputs[0].floats.size(), 6);
    for (const float number : outputs[0].floats) {
      EXPECT_EQ(number, 0);
      EXPECT_FALSE(std::signbit(number));
    }
  }
}

}  // namespace
}  // namespace thimble
