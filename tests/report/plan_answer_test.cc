#include "thimble/report/plan_answer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/model_graphs.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

using Json = nlohmann::json;

class PlanAnswerTest : public testing::Test {
 protected:
  Json Summary(int64_t budget_bytes = 0) {
    answer_.budget_bytes = budget_bytes;
    return Json::parse(ToJson(answer_));
  }

  PlanAnswer answer_{"wrn-10-1", 3, 0, 12345,
                     RecordOf(PlanGraphs({{"train 3", TrainingGraph("wrn-10-1", 3, TinyImages())}}),
                              BuiltinOps())};
};

TEST_F(PlanAnswerTest, HasAllPromisedKeys) {
  const Json json = Summary();
  const PlanRecord& plan = answer_.plan();
  EXPECT_EQ(json["model"], "wrn-10-1");
  EXPECT_EQ(json["batch"], 3);
  EXPECT_EQ(json["parameters"], plan.parameters);
  EXPECT_EQ(json["arena_bytes"], answer_.record.arena_bytes);
  EXPECT_EQ(json["kept_bytes"], Account(plan).kept_bytes);
  EXPECT_EQ(json["plain_arena_bytes"], 12345);
  EXPECT_EQ(json["lower_bound_bytes"], plan.lower_bound_bytes);
  EXPECT_EQ(json["flops"]["forward"], plan.forward_flops);
  EXPECT_EQ(json["flops"]["step"], plan.step_flops);
  EXPECT_EQ(json["flops"]["recompute"], 0);
}

TEST_F(PlanAnswerTest, CategoriesSumUpToTheArena) {
  const Json categories = Summary()["categories"];
  EXPECT_EQ(categories.size(), kNumCategories + 1);
  size_t sum = 0;
  for (const auto& [name, bytes] : categories.items()) sum += bytes.get<size_t>();
  EXPECT_EQ(sum, answer_.record.arena_bytes);
  EXPECT_TRUE(categories.contains("gaps"));
}

TEST_F(PlanAnswerTest, FitsIsAboutTheBudget) {
  const auto arena = static_cast<int64_t>(answer_.record.arena_bytes);
  EXPECT_TRUE(Summary()["fits"]);
  EXPECT_FALSE(Summary().contains("budget_bytes"));
  EXPECT_TRUE(Summary(arena)["fits"]);
  EXPECT_FALSE(Summary(arena - 1)["fits"]);
  EXPECT_EQ(Summary(arena - 1)["budget_bytes"], arena - 1);
}

}  // namespace
}  // namespace thimble
