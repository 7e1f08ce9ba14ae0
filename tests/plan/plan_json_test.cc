#include "thimble/plan/plan_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/model_graphs.h"
#include "thimble/base/json.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

using testing::HasSubstr;

class PlanJsonTest : public testing::Test {
 protected:
  // The error message for the JSON after a change.
  template <class Change>
  std::string ErrorAfter(const Change& change) const {
    Json json = json_;
    change(json);
    const auto record = ProgramRecordFromJson(json.Dump());
    return record.ok() ? "" : record.error().message;
  }

  ProgramRecord record_ =
      RecordOf(PlanGraphs({{"train 3", TrainingGraph("wrn-10-1", 3, TinyImages()), 5},
                           {"evaluate 2", EvaluationGraph("wrn-10-1", 2, TinyImages())}}),
               BuiltinOps());
  Json json_ = ParseJson(ToJson(record_)).value();
};

TEST_F(PlanJsonTest, ComesBackAsItWas) {
  const auto back = ProgramRecordFromJson(ToJson(record_));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(*back, record_);
}

TEST_F(PlanJsonTest, HasTotalsAtThePeak) {
  const MemoryAccount account = Account(record_.plans[0]);
  const Json& plan = json_["plans"][0];
  EXPECT_EQ(plan["peak_step"], account.peak_step);
  EXPECT_EQ(plan["categories"].size(), kNumCategories + 1);
  EXPECT_EQ(plan["categories"]["gaps"], account.gap_bytes);
  size_t sum = 0;
  for (const auto& [name, bytes] : plan["categories"].members()) sum += bytes.get<size_t>();
  EXPECT_EQ(sum, record_.plans[0].arena_bytes);
}

TEST_F(PlanJsonTest, HasOneLineForEachStepAndHolding) {
  const std::string text = ToJson(record_);
  size_t expected = 0;
  for (const PlanRecord& plan : record_.plans) {
    expected += 4 + plan.techniques.size() + plan.steps.size() + plan.holdings.size();
  }
  EXPECT_EQ(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')), expected + 2);
}

TEST_F(PlanJsonTest, NamesTheFirstThingThatIsWrong) {
  const auto first = [](Json& json) -> Json& { return json["plans"][0]; };
  EXPECT_THAT(ErrorAfter([](Json& json) { json = 5; }), HasSubstr("not a JSON object"));
  EXPECT_THAT(ErrorAfter([](Json& json) { json.erase("arena_bytes"); }),
              HasSubstr("top.arena_bytes: expected a whole number, 0 or more"));
  EXPECT_THAT(ErrorAfter([](Json& json) { json["plans"] = Json::EmptyArray(); }),
              HasSubstr("at least one plan"));
  EXPECT_THAT(ErrorAfter([&](Json& json) { first(json)["name"] = 7; }),
              HasSubstr("plans[0].name: expected a string"));
  EXPECT_THAT(ErrorAfter([&](Json& json) { first(json).erase("steps"); }),
              HasSubstr("plans[0].steps: expected a list"));
  EXPECT_THAT(ErrorAfter([&](Json& json) { first(json)["steps"][2] = "no"; }),
              HasSubstr("plans[0].steps[2]: expected an object"));
  EXPECT_THAT(ErrorAfter([&](Json& json) { first(json)["steps"][1]["inputs"][0] = 1; }),
              HasSubstr("plans[0].steps[1].inputs: expected a list of strings"));
  EXPECT_THAT(ErrorAfter([&](Json& json) { first(json)["holdings"][0]["category"] = "odd"; }),
              HasSubstr("plans[0].holdings[0].category: expected a category"));
  EXPECT_THAT(ErrorAfter([&](Json& json) { first(json)["holdings"][0]["resident"] = 0; }),
              HasSubstr("expected true or false"));
}

TEST_F(PlanJsonTest, RefusesImpossibleNumbers) {
  const auto held = [](Json& json) -> Json& { return json["plans"][0]["holdings"][3]; };
  EXPECT_THAT(ErrorAfter([&](Json& json) { held(json)["offset"] = -64; }),
              HasSubstr("holdings[3].offset: expected a whole number, 0 or more"));
  EXPECT_THAT(ErrorAfter([&](Json& json) { held(json)["bytes"] = 1.5; }),
              HasSubstr("holdings[3].bytes: expected a whole number"));
  EXPECT_THAT(ErrorAfter([&](Json& json) { held(json)["bytes"] = ~uint64_t{0}; }),
              HasSubstr("holdings[3].bytes"));
  EXPECT_THAT(ErrorAfter([&](Json& json) { held(json)["offset"] = int64_t{1} << 62; }),
              HasSubstr("holdings[3]: expected bytes inside the arena"));
  EXPECT_THAT(ErrorAfter([&](Json& json) { held(json)["end"] = 1'000'000; }),
              HasSubstr("holdings[3]: expected a live range within the steps"));
  EXPECT_THAT(ErrorAfter([&](Json& json) { held(json)["first"] = held(json)["end"]; }),
              HasSubstr("holdings[3]: expected a live range within the steps"));
  EXPECT_THAT(ErrorAfter([&](Json& json) { json["plans"][1]["arena_bytes"] = 1ULL << 60; }),
              HasSubstr("plans[1]: expected a plan within the size limits"));
  EXPECT_THAT(ErrorAfter([&](Json& json) {
                Json& holdings = json["plans"][0]["holdings"];
                for (int i = 0; i < 4; ++i) holdings.push_back(Json(holdings[0]));
                for (Json& element : holdings) element["bytes"] = json["plans"][0]["arena_bytes"];
                for (Json& element : holdings) element["offset"] = 0;
              }),
              HasSubstr("plans[0]: expected at most as many live bytes as the arena has"));
}

TEST_F(PlanJsonTest, NumbersBeyondAllAreRefused) {
  const auto record = ProgramRecordFromJson("{\"arena_bytes\": 1e999}");
  ASSERT_FALSE(record.ok());
  EXPECT_EQ(record.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(record.error().message, HasSubstr("a number that is too large"));
}

TEST_F(PlanJsonTest, TornFilesAreRefused) {
  const std::string text = ToJson(record_);
  for (size_t length = 0; length + 2 < text.size(); length += 997) {
    const auto torn = ProgramRecordFromJson(std::string_view(text).substr(0, length));
    ASSERT_FALSE(torn.ok()) << length;
    // The place of the first missing byte, or of the incomplete word before it.
    EXPECT_THAT(torn.error().message, testing::StartsWith("is truncated or not JSON: byte "));
  }
}

// Older versions did not write this number.
TEST_F(PlanJsonTest, WithoutRunsTheFirstPlanIsTheStep) {
  for (Json& plan : json_["plans"]) plan.erase("runs_per_step");
  const auto record = ProgramRecordFromJson(json_.Dump());
  ASSERT_TRUE(record.ok()) << record.error().message;
  EXPECT_EQ(record->plans[0].runs_per_step, 1);
  EXPECT_EQ(record->plans[1].runs_per_step, 0);
  EXPECT_EQ(StepCost(*record).step_flops, record_.plans[0].step_flops);
}

TEST_F(PlanJsonTest, RefusesImpossibleRunsAndArithmetic) {
  const auto with = [&](const char* name, const Json& value) {
    return ErrorAfter([&](Json& json) { json["plans"][0][name] = value; });
  };
  EXPECT_THAT(with("runs_per_step", "ten"), HasSubstr("plans[0].runs_per_step: expected"));
  EXPECT_THAT(with("runs_per_step", -1), HasSubstr("a plan within the size limits"));
  EXPECT_THAT(with("runs_per_step", int64_t{1} << 40), HasSubstr("a plan within the size limits"));
  EXPECT_THAT(with("step_flops", int64_t{1} << 62), HasSubstr("a plan within the size limits"));
  EXPECT_THAT(with("forward_flops", -1), HasSubstr("a plan within the size limits"));
  // Layers sum up the arithmetic of their steps.
  for (const int64_t flops : {int64_t{-1}, INT64_MIN, INT64_MAX, int64_t{1} << 54}) {
    EXPECT_THAT(ErrorAfter([&](Json& json) {
                  for (Json& step : json["plans"][0]["steps"]) step["flops"] = flops;
                }),
                HasSubstr("plans[0]: expected a plan within the size limits"))
        << flops;
  }
  EXPECT_THAT(ErrorAfter([](Json& json) {
                for (int i = 0; i < 200; ++i) json["plans"].push_back(json["plans"][1]);
              }),
              HasSubstr("plans: expected at most 128 plans"));
}

}  // namespace
}  // namespace thimble
