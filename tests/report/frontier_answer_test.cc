#include "thimble/report/frontier_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/made_frontier.h"
#include "thimble/base/json.h"

namespace thimble {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

FrontierAnswer Answer() { return {"wrn-28-2", 100, "cpu", 400'000'000, MadeFrontier()}; }

TEST(FrontierAnswer, HasARowForEachPoint) {
  const std::string text = FrontierText(Answer());
  EXPECT_THAT(text, HasSubstr("wrn-28-2, batch 100, cpu: from the plain plan"));
  EXPECT_THAT(text, ContainsRegex("400,000,000 +1.0x +1.2x +500 ms +same +same-bits"));
  EXPECT_THAT(text, ContainsRegex("100,000,000 +4.0x +4.8x +750 ms +same +same-bits +--recompute"));
  EXPECT_THAT(text, ContainsRegex("4,000,000 +100.0x +121.1x +1.25 s +-0.30 +lossy +--precision"));
  EXPECT_THAT(text, HasSubstr("steps as predicted"));
}

TEST(FrontierAnswer, ShowsArithmeticWhereTimesAreUnknown) {
  FrontierAnswer answer = Answer();
  answer.model = "a network of my own";
  for (FrontierPoint& point : answer.points) point.step_seconds = 0;
  const std::string text = FrontierText(answer);
  EXPECT_THAT(text, ContainsRegex("100,000,000 +4.0x +1.50 GFLOP +same"));
  EXPECT_THAT(text, HasSubstr("thimble calibrate measures this machine"));
}

TEST(FrontierAnswer, IsOneJsonObject) {
  const auto json = ParseJson(ToJson(Answer()));
  ASSERT_TRUE(json.ok());
  EXPECT_EQ((*json)["plain_arena_bytes"], 400'000'000);
  ASSERT_EQ((*json)["points"].size(), 3U);
  const Json& last = (*json)["points"][2];
  EXPECT_EQ(last["arena_bytes"], 4'000'000);
  EXPECT_DOUBLE_EQ(last["to_plain"].number(), 100);
  EXPECT_DOUBLE_EQ(last["to_pytorch"].number(), 121.075);
  EXPECT_DOUBLE_EQ(last["predicted_step_ms"].number(), 1250);
  EXPECT_EQ(last["step_flops"], 1'600'000'000);
  EXPECT_DOUBLE_EQ(last["lost_points"].number(), 0.3);
  EXPECT_EQ(last["class"], "lossy");
  EXPECT_EQ(last["options"], "--precision fp16 --sparsity 0.7");
}

}  // namespace
}  // namespace thimble
