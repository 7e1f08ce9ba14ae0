#include "thimble/train/options/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace thimble {
namespace {

double Rate(const char* schedule, const ScheduleSpan& span, int64_t step) {
  return LearningRate(*ParseSchedule(schedule), span, 0.5, step);
}

TEST(Schedule, ConstantStaysPut) {
  for (const int64_t step : {0, 1, 99}) EXPECT_EQ(Rate("constant", {100, 10, 0}, step), 0.5);
}

TEST(Schedule, CosineFallsFromBaseToZero) {
  const ScheduleSpan span{100, 10, 0};
  EXPECT_EQ(Rate("cosine", span, 0), 0.5);
  EXPECT_DOUBLE_EQ(Rate("cosine", span, 50), 0.25);
  EXPECT_NEAR(Rate("cosine", span, 99), 0, 0.5 * 0.001);
  for (int64_t step = 1; step < 100; ++step) {
    EXPECT_LT(Rate("cosine", span, step), Rate("cosine", span, step - 1)) << step;
    EXPECT_GT(Rate("cosine", span, step), 0) << step;
  }
}

TEST(Schedule, StepsMultiplyAtTheirEpochs) {
  const ScheduleSpan span{100, 10, 0};
  EXPECT_EQ(Rate("steps:2,5:0.1", span, 19), 0.5);
  EXPECT_DOUBLE_EQ(Rate("steps:2,5:0.1", span, 20), 0.05);
  EXPECT_DOUBLE_EQ(Rate("steps:2,5:0.1", span, 49), 0.05);
  EXPECT_DOUBLE_EQ(Rate("steps:2,5:0.1", span, 50), 0.005);
  EXPECT_DOUBLE_EQ(Rate("steps:2.5:0.1", span, 24), 0.5);
  EXPECT_DOUBLE_EQ(Rate("steps:2.5:0.1", span, 25), 0.05);
  EXPECT_EQ(Rate("steps:0:0", span, 0), 0);
}

TEST(Schedule, WarmUpRisesToTheBase) {
  const ScheduleSpan span{100, 10, 4};
  EXPECT_DOUBLE_EQ(Rate("constant", span, 0), 0.125);
  EXPECT_DOUBLE_EQ(Rate("constant", span, 2), 0.375);
  EXPECT_EQ(Rate("constant", span, 3), 0.5);
  EXPECT_EQ(Rate("cosine", span, 4), 0.5);
  EXPECT_DOUBLE_EQ(Rate("cosine", span, 52), 0.25);
}

TEST(Schedule, WarmUpLongerThanTheRun) {
  const ScheduleSpan span{4, 2, 8};
  EXPECT_DOUBLE_EQ(Rate("cosine", span, 3), 0.25);
  EXPECT_EQ(Rate("cosine", span, 9), 0.5);  // after the last step; still a valid rate
}

// The recipe of fairseq's Transformer: 1e-7 to 5e-4 over 4,000 updates.
TEST(Schedule, InverseSqrtFallsFromTheWarmUp) {
  const Schedule schedule = *ParseSchedule("inverse-sqrt:1e-7");
  const ScheduleSpan span{50000, 1000, 4000};
  const auto rate = [&](int64_t number) { return LearningRate(schedule, span, 5e-4, number - 1); };
  EXPECT_DOUBLE_EQ(rate(1), 1e-7 + (5e-4 - 1e-7) / 4000);
  EXPECT_DOUBLE_EQ(rate(2000), (1e-7 + 5e-4) / 2);
  EXPECT_DOUBLE_EQ(rate(4000), 5e-4);
  EXPECT_DOUBLE_EQ(rate(16000), 2.5e-4);
  EXPECT_DOUBLE_EQ(rate(50000), 5e-4 * std::sqrt(0.08));
  for (int64_t number = 4001; number < 4100; ++number) EXPECT_LT(rate(number), rate(number - 1));
}

TEST(Schedule, InverseSqrtStartsAtZeroUnlessSaid) {
  const ScheduleSpan span{100, 10, 4};
  EXPECT_DOUBLE_EQ(Rate("inverse-sqrt", span, 0), 0.125);
  EXPECT_DOUBLE_EQ(Rate("inverse-sqrt", span, 3), 0.5);
  EXPECT_DOUBLE_EQ(Rate("inverse-sqrt", span, 15), 0.25);
  EXPECT_DOUBLE_EQ(Rate("inverse-sqrt:0.1", span, 0), 0.2);
}

TEST(Schedule, InverseSqrtWithoutWarmUpFallsAtOnce) {
  const ScheduleSpan span{100, 10, 0};
  EXPECT_DOUBLE_EQ(Rate("inverse-sqrt:0.1", span, 0), 0.5);
  EXPECT_DOUBLE_EQ(Rate("inverse-sqrt", span, 3), 0.25);
  EXPECT_DOUBLE_EQ(Rate("inverse-sqrt", span, 99), 0.05);
}

TEST(ParseSchedule, Right) {
  EXPECT_EQ(ParseSchedule("constant")->kind, Schedule::Kind::kConstant);
  EXPECT_EQ(ParseSchedule("cosine")->kind, Schedule::Kind::kCosine);
  const auto steps = ParseSchedule("steps:60,120,160:0.2");
  ASSERT_TRUE(steps.ok());
  EXPECT_EQ(steps->kind, Schedule::Kind::kSteps);
  EXPECT_EQ(steps->epochs, (std::vector<double>{60, 120, 160}));
  EXPECT_EQ(steps->factor, 0.2);
  EXPECT_EQ(ParseSchedule("inverse-sqrt")->kind, Schedule::Kind::kInverseSqrt);
  EXPECT_EQ(ParseSchedule("inverse-sqrt")->start, 0);
  EXPECT_EQ(ParseSchedule("inverse-sqrt:1e-7")->start, 1e-7);
}

TEST(ParseSchedule, Wrong) {
  for (const char* text : {"",
                           "Constant",
                           "cosine:1",
                           "linear",
                           "steps",
                           "steps:",
                           "steps:60",
                           "steps:60:",
                           "steps::0.1",
                           "steps:60,60:0.1",
                           "steps:120,60:0.1",
                           "steps:60,:0.1",
                           "steps:,60:0.1",
                           "steps:-1:0.1",
                           "steps:60:-0.1",
                           "steps:60:nan",
                           "steps:inf:0.1",
                           "steps:60:0.1:2",
                           "steps:sixty:0.1",
                           "steps:60;120:0.1",
                           "inverse-sqrt:",
                           "inverse-sqrt1",
                           "inverse-sqrt:-1",
                           "inverse-sqrt:nan",
                           "inverse-sqrt:1:2",
                           "inverse-sqr",
                           "steps:60:0.1 "}) {
    const auto schedule = ParseSchedule(text);
    ASSERT_FALSE(schedule.ok()) << text;
    EXPECT_EQ(schedule.error().kind, ErrorKind::kBadInput);
    EXPECT_EQ(schedule.error().message.find("--schedule " + std::string(text) + ": expected"), 0U);
  }
}

}  // namespace
}  // namespace thimble
