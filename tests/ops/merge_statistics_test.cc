#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/support/case_draw.h"
#include "tests/support/op_check.h"
#include "tests/support/run_op.h"

namespace thimble {
namespace {

using testing::HasSubstr;

// Statistics of a part that was normalised in groups.
OpCase GroupsCase(int64_t groups, int64_t channels, int64_t samples, int seen_bound = 1 << 10) {
  return {.op = "merge_statistics",
          .inputs = {Shape{channels}, Shape{channels}, Shape{groups, channels},
                     Shape{groups, channels}, Shape{1}},
          .attributes = {{"samples", samples}},
          .integer_bound = seen_bound,
          .positive_inputs = {1, 3},
          .shared_sum_size = static_cast<double>(groups)};
}

OpCase MergeStatisticsCase(const Shape& shape, int64_t samples, int seen_bound = 1 << 10) {
  return {.op = "merge_statistics",
          .inputs = {shape, shape, shape, shape, Shape{1}},
          .attributes = {{"samples", samples}},
          .integer_bound = seen_bound,
          .positive_inputs = {1, 3}};
}

}  // namespace

std::vector<OpCase> MergeStatisticsCases() {
  return {MergeStatisticsCase(Shape{1}, 10),
          MergeStatisticsCase(Shape{17}, 3),
          MergeStatisticsCase(Shape{200}, 1),
          MergeStatisticsCase(Shape{0}, 5),
          MergeStatisticsCase(Shape{64}, 7, /*seen_bound=*/1),
          GroupsCase(3, 17, 7),
          GroupsCase(1, 5, 4),
          GroupsCase(5, 130, 5, /*seen_bound=*/1)};
}

OpCase Random_merge_statistics(CaseDraw& draw) {
  const int64_t channels = draw.OneIn(24) ? 0 : draw.Size(300);
  const int seen_bound = draw.OneIn(3) ? 1 : 1 << 10;
  if (draw.OneIn(2)) return MergeStatisticsCase(Shape{channels}, draw.Between(1, 1000), seen_bound);
  const int64_t groups = draw.Between(1, 60);
  return GroupsCase(groups, channels, draw.Between(groups, 200), seen_bound);
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

// Parts of 3, 2 and 2 samples, merged one after the other by each kernel: the result is the moments
// of all seven.
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
    const auto all =
        RunAllKernels(MergeStatisticsCase(Shape{1}, static_cast<int64_t>(samples)), inputs);
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

// A part of three groups is merged like three parts, one after the other.
TEST(MergeStatistics, GroupsOfAPartJoinOneAfterTheOther) {
  const std::vector<float> means = {1, -2, 6};
  const std::vector<float> variances = {0.5, 4, 2};
  for (const int seen : {0, 4}) {
    const std::vector<OpData> inputs = {
        {{3}, {}}, {{1.5}, {}}, {means, {}}, {variances, {}}, {{}, {seen}}};
    const auto all = RunAllKernels(GroupsCase(3, 1, 7), inputs);
    std::vector<OpData> expected = {inputs[0], inputs[1]};
    int before = seen;
    const int sizes[] = {3, 2, 2};
    for (size_t group = 0; group < 3; ++group) {
      expected = RunOp(MergeStatisticsCase(Shape{1}, sizes[group]), {expected[0],
                                                                     expected[1],
                                                                     {{means[group]}, {}},
                                                                     {{variances[group]}, {}},
                                                                     {{}, {before}}});
      before += sizes[group];
    }
    for (const auto& outputs : all) {
      EXPECT_NEAR(outputs[0].floats[0], expected[0].floats[0], 1e-6);
      EXPECT_NEAR(outputs[1].floats[0], expected[1].floats[0], 1e-5);
    }
  }
}

TEST(MergeStatistics, TheFirstPartReplacesWhateverIsThere) {
  const std::vector<OpData> inputs = {
      {{NAN}, {}}, {{INFINITY}, {}}, {{2}, {}}, {{3}, {}}, {{}, {0}}};
  for (const auto& outputs : RunAllKernels(MergeStatisticsCase(Shape{1}, 4), inputs)) {
    EXPECT_EQ(outputs[0].floats[0], 2);
    EXPECT_EQ(outputs[1].floats[0], 3);
  }
}

TEST(MergeStatistics, RejectsWrongShapes) {
  const char* names[] = {"", "'variance_sum'", "'mean'", "'variance'", "'seen'"};
  for (size_t input = 1; input < 5; ++input) {
    OpCase op_case = MergeStatisticsCase(Shape{3}, 1);
    op_case.inputs[input] = Shape{4};
    EXPECT_THAT(ShapeError(op_case), HasSubstr(names[input]));
  }
}

TEST(MergeStatistics, RejectsWrongGroups) {
  OpCase op_case = GroupsCase(2, 3, 4);
  op_case.inputs[2] = Shape{2, 4};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'mean' has shape (2, 4), expected (2, 3)"));
  op_case = GroupsCase(2, 3, 4);
  op_case.inputs[3] = Shape{3};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'variance' has shape (3), expected (2, 3)"));
  EXPECT_THAT(ShapeError(GroupsCase(5, 3, 4)), HasSubstr("samples is 4, expected at least 5"));
  EXPECT_THAT(ShapeError(GroupsCase(0, 3, 4)), HasSubstr("groups is 0, expected at least 1"));
}

TEST(MergeStatistics, RejectsNoSamples) {
  EXPECT_THAT(ShapeError(MergeStatisticsCase(Shape{3}, 0)),
              HasSubstr("samples is 0, expected at least 1"));
}

}  // namespace
}  // namespace thimble
