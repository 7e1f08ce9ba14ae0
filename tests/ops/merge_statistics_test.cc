#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/support/op_check.h"
#include "tests/support/run_op.h"

namespace thimble {
namespace {

using testing::HasSubstr;

OpCase MakeCase(const Shape& shape, int64_t samples, int seen_bound = 1 << 10) {
  return {.op = "merge_statistics",
          .inputs = {shape, shape, shape, shape, Shape{1}},
          .attributes = {{"samples", samples}},
          .integer_bound = seen_bound,
          .positive_inputs = {1, 3}};
}

}  // namespace

std::vector<OpCase> MergeStatisticsCases() {
  return {MakeCase(Shape{1}, 10), MakeCase(Shape{17}, 3), MakeCase(Shape{200}, 1),
          MakeCase(Shape{0}, 5), MakeCase(Shape{64}, 7, /*seen_bound=*/1)};
}

namespace {

struct Moments {
  double mean = 0;
  double variance = 0;
};

// Biased, as batch norm uses it.
Moments MomentsOf(const std::vector<double>& numbers, size_t begin, size_t end) {
  Moments moments;
  const auto count = static_cast<double>(end - begin);
  for (size_t i = begin; i < end; ++i) moments.mean += numbers[i] / count;
  for (size_t i = begin; i < end; ++i) {
    moments.variance += std::pow(numbers[i] - moments.mean, 2) / count;
  }
  return moments;
}

// Parts of 3, 2 and 2 samples, one after the other through each kernel: what comes out are the
// moments of all seven.
TEST(MergeStatistics, UnequalPartsGiveTheMomentsOfTheWhole) {
  const std::vector<double> numbers = {1, 4, -2, 10, 8, 0.5, 3};
  const Moments whole = MomentsOf(numbers, 0, numbers.size());
  float mean = NAN;
  float variance = NAN;
  int seen = 0;
  for (const size_t samples : {3, 2, 2}) {
    const auto begin = static_cast<size_t>(seen);
    const Moments part = MomentsOf(numbers, begin, begin + samples);
    const std::vector<OpData> inputs = {{{mean}, {}},
                                        {{variance}, {}},
                                        {{static_cast<float>(part.mean)}, {}},
                                        {{static_cast<float>(part.variance)}, {}},
                                        {{}, {seen}}};
    const auto all = RunAllKernels(MakeCase(Shape{1}, static_cast<int64_t>(samples)), inputs);
    for (const auto& outputs : all) {
      EXPECT_NEAR(outputs[0].floats[0], all[0][0].floats[0], 1e-5);
      EXPECT_NEAR(outputs[1].floats[0], all[0][1].floats[0], 1e-5);
    }
    mean = all[0][0].floats[0];
    variance = all[0][1].floats[0];
    seen += static_cast<int>(samples);
  }
  EXPECT_NEAR(mean, whole.mean, 1e-5);
  EXPECT_NEAR(variance, whole.variance, 1e-5);
}

TEST(MergeStatistics, TheFirstPartReplacesWhateverIsThere) {
  const std::vector<OpData> inputs = {
      {{NAN}, {}}, {{INFINITY}, {}}, {{2}, {}}, {{3}, {}}, {{}, {0}}};
  for (const auto& outputs : RunAllKernels(MakeCase(Shape{1}, 4), inputs)) {
    EXPECT_EQ(outputs[0].floats[0], 2);
    EXPECT_EQ(outputs[1].floats[0], 3);
  }
}

TEST(MergeStatistics, RejectsWrongShapes) {
  const char* names[] = {"", "'variance_sum'", "'mean'", "'variance'", "'seen'"};
  for (size_t input = 1; input < 5; ++input) {
    OpCase op_case = MakeCase(Shape{3}, 1);
    op_case.inputs[input] = Shape{4};
    EXPECT_THAT(ShapeError(op_case), HasSubstr(names[input]));
  }
}

TEST(MergeStatistics, RejectsNoSamples) {
  EXPECT_THAT(ShapeError(MakeCase(Shape{3}, 0)), HasSubstr("samples is 0, expected at least 1"));
}

}  // namespace
}  // namespace thimble
