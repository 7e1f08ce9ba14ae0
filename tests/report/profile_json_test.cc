#include "thimble/report/profile_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/made_profile.h"
#include "thimble/base/json.h"

namespace thimble {
namespace {

TEST(ProfileJson, HasAllOfIt) {
  const auto json = ParseJson(ToJson(MadeProfile())).value();
  EXPECT_EQ(json["model"], "net");
  EXPECT_EQ(json["batch"], 8);
  EXPECT_EQ(json["repeat"], 2);
  EXPECT_EQ(json["agrees"], true);
  EXPECT_TRUE(json["differences"].empty());
  EXPECT_EQ(json["arena_bytes"], json["allocated_bytes"]);
  EXPECT_EQ(json["categories"]["step"], 2);
  EXPECT_EQ(json["categories"]["planned"]["activations"], 3000);
  EXPECT_EQ(json["categories"]["planned"]["gaps"], 332);
  EXPECT_EQ(json["categories"]["planned"], json["categories"]["measured"]);
  EXPECT_DOUBLE_EQ(json["step_ms"].number(), 10);
  EXPECT_TRUE(json["predicted_step_ms"].is_null());
  ASSERT_EQ(json["ops"].size(), 3U);
  EXPECT_EQ(json["ops"][0]["op"], "sgd");
  ASSERT_EQ(json["layers"].size(), 3U);
  EXPECT_EQ(json["layers"][1]["layer"], "second");
  EXPECT_EQ(json["layers"][1]["flops"], 30'000'000);
  ASSERT_EQ(json["steps"].size(), 4U);
  EXPECT_EQ(json["steps"][2]["op"], "scale_grad");
  EXPECT_DOUBLE_EQ(json["steps"][2]["ms"].number(), 3);
  EXPECT_EQ(json["holdings"].size(), 5U);
}

TEST(ProfileJson, ShowsADifferenceEverywhereItMatters) {
  const auto json = ParseJson(ToJson(ProfileWithDifference())).value();
  EXPECT_EQ(json["agrees"], false);
  ASSERT_EQ(json["differences"].size(), 1U);
  EXPECT_THAT(json["differences"][0].get<std::string>(), testing::HasSubstr("'z'"));
  EXPECT_EQ(json["categories"]["measured"]["activations"], 3004);
  EXPECT_EQ(json["categories"]["measured"]["gaps"], 328);
  EXPECT_EQ(json["layers"][1]["measured"]["activations"], 2004);
  EXPECT_EQ(json["steps"][0]["planned"], json["steps"][0]["measured"]);
  EXPECT_NE(json["steps"][1]["planned"], json["steps"][1]["measured"]);
  EXPECT_EQ(json["holdings"][3]["measured_bytes"], 2004);
}

}  // namespace
}  // namespace thimble
