#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/op_check.h"
#include "tests/support/run_op.h"

namespace thimble {
namespace {

using testing::HasSubstr;

OpCase MakeCase(int64_t channels, double momentum, int64_t count) {
  const Shape shape{channels};
  return {.op = "batch_norm_update",
          .inputs = {shape, shape, shape, shape},
          .attributes = {{"momentum", momentum}, {"count", count}},
          .positive_inputs = {1, 3}};
}

}  // namespace

std::vector<OpCase> BatchNormUpdateCases() {
  return {MakeCase(1, 0.1, 100), MakeCase(17, 0.1, 2), MakeCase(64, 1.0, 1), MakeCase(0, 0.1, 5)};
}

namespace {

TEST(BatchNormUpdate, MovesTowardsTheBatch) {
  // The variance of 3 samples, unbiased: 4 * 3 / 2 = 6.
  const auto outputs = RunOp(MakeCase(1, 0.25, 3), {{{8}, {}}, {{2}, {}}, {{16}, {}}, {{4}, {}}});
  EXPECT_EQ(outputs[0].floats[0], 10);
  EXPECT_EQ(outputs[1].floats[0], 3);
}

TEST(BatchNormUpdate, OneSampleHasNothingToUnbias) {
  const auto outputs = RunOp(MakeCase(1, 0.5, 1), {{{0}, {}}, {{2}, {}}, {{0}, {}}, {{4}, {}}});
  EXPECT_EQ(outputs[1].floats[0], 3);
}

TEST(BatchNormUpdate, RejectsWrongShapes) {
  const char* names[] = {"", "'running_variance'", "'mean'", "'variance'"};
  for (size_t input = 1; input < 4; ++input) {
    OpCase op_case = MakeCase(3, 0.1, 2);
    op_case.inputs[input] = Shape{4};
    EXPECT_THAT(ShapeError(op_case), HasSubstr(names[input]));
  }
}

TEST(BatchNormUpdate, RejectsNoSamples) {
  EXPECT_THAT(ShapeError(MakeCase(3, 0.1, 0)), HasSubstr("count is 0, expected at least 1"));
}

}  // namespace
}  // namespace thimble
