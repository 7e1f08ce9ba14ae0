#include "thimble/plan/plan_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/model_graphs.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/plan/cost.h"
#include "thimble/plan/memory/accounting.h"

namespace thimble {
namespace {

using Json = nlohmann::json;

class PlanJsonTest : public testing::Test {
 protected:
  Json Whole() const { return Json::parse(ProgramJson(program_, BuiltinOps())); }
  Json Summary(const PlanSummaryInput& input = {}) const {
    return Json::parse(PlanSummaryJson(program_, BuiltinOps(), input));
  }

  Program program_ = PlanGraphs({{"train 3", TrainingGraph("wrn-10-1", 3, TinyImages())},
                                 {"evaluate 2", EvaluationGraph("wrn-10-1", 2, TinyImages())}});
};

TEST_F(PlanJsonTest, HoldsEveryPlanStepAndBuffer) {
  const Json json = Whole();
  EXPECT_EQ(json["arena_bytes"], program_.arena_bytes);
  ASSERT_EQ(json["plans"].size(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    const Plan& plan = program_.plans[i];
    EXPECT_EQ(json["plans"][i]["name"], program_.names[i]);
    EXPECT_EQ(json["plans"][i]["arena_bytes"], plan.arena_bytes);
    EXPECT_EQ(json["plans"][i]["lower_bound_bytes"], plan.lower_bound_bytes);
    EXPECT_EQ(json["plans"][i]["peak_step"], Account(plan).peak_step);
    EXPECT_EQ(json["plans"][i]["steps"].size(), plan.steps.size());
    EXPECT_EQ(json["plans"][i]["buffers"].size(), plan.placements.size());
    EXPECT_EQ(json["plans"][i]["decisions"].size(), plan.decisions.size());
  }
}

TEST_F(PlanJsonTest, StepsNameWhatTheyDo) {
  const Json steps = Whole()["plans"][0]["steps"];
  EXPECT_EQ(steps[0]["op"], "image_normalize");
  EXPECT_EQ(steps[0]["layer"], "normalize");
  EXPECT_EQ(steps[0]["phase"], "forward");
  EXPECT_EQ(steps[0]["inputs"], Json::parse(R"(["images"])"));
  EXPECT_EQ(steps[0]["outputs"].size(), 1U);
  EXPECT_NE(steps[0]["kernel"], "");
  EXPECT_EQ(steps.back()["phase"], "update");
}

TEST_F(PlanJsonTest, BuffersSayWhereAndWhen) {
  const Json buffers = Whole()["plans"][0]["buffers"];
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Placement& placement = program_.plans[0].placements[i];
    EXPECT_EQ(buffers[i]["name"], placement.name);
    EXPECT_EQ(buffers[i]["offset"], placement.offset);
    EXPECT_EQ(buffers[i]["bytes"], placement.size_bytes);
    EXPECT_EQ(buffers[i]["first"], placement.live.first);
    EXPECT_EQ(buffers[i]["end"], placement.live.end);
    EXPECT_EQ(buffers[i]["resident"], placement.resident);
  }
}

TEST_F(PlanJsonTest, ResidentsAreListedOnce) {
  const Json residents = Whole()["residents"];
  ASSERT_EQ(residents.size(), program_.residents.residents.size());
  EXPECT_EQ(residents[0]["name"], "conv1.weight");
  EXPECT_EQ(residents[0]["category"], "model");
  EXPECT_EQ(residents[0]["offset"], 0);
  EXPECT_EQ(residents[0]["bytes"], 16 * 27 * 4);
}

TEST_F(PlanJsonTest, SummaryHasAllPromisedKeys) {
  const Json json = Summary({"wrn-10-1", 3, 0, 12345});
  const MemoryAccount account = Account(program_.plans[0]);
  const GraphCost cost = CostOf(program_.plans[0].graph, BuiltinOps());
  EXPECT_EQ(json["model"], "wrn-10-1");
  EXPECT_EQ(json["batch"], 3);
  EXPECT_EQ(json["parameters"], CountParameters(program_.plans[0].graph));
  EXPECT_EQ(json["arena_bytes"], program_.arena_bytes);
  EXPECT_EQ(json["kept_bytes"], account.kept_bytes);
  EXPECT_EQ(json["plain_arena_bytes"], 12345);
  EXPECT_EQ(json["lower_bound_bytes"], program_.plans[0].lower_bound_bytes);
  EXPECT_EQ(json["flops"]["forward"], cost.forward_flops);
  EXPECT_EQ(json["flops"]["step"], cost.step_flops);
  EXPECT_EQ(json["flops"]["recompute"], 0);
}

TEST_F(PlanJsonTest, CategoriesSumUpToTheArena) {
  const Json categories = Summary()["categories"];
  EXPECT_EQ(categories.size(), kNumCategories + 1);
  size_t sum = 0;
  for (const auto& [name, bytes] : categories.items()) sum += bytes.get<size_t>();
  EXPECT_EQ(sum, program_.arena_bytes);
  EXPECT_TRUE(categories.contains("gaps"));
}

TEST_F(PlanJsonTest, TechniquesHaveClassAndSaving) {
  const Json techniques = Summary()["techniques"];
  ASSERT_EQ(techniques.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(techniques[i]["name"], program_.plans[0].decisions[i].pass);
    EXPECT_EQ(techniques[i]["class"], "same-bits");
    EXPECT_EQ(techniques[i]["saved_bytes"], program_.plans[0].decisions[i].saved_bytes);
    EXPECT_EQ(techniques[i]["added_flops"], 0);
  }
}

TEST_F(PlanJsonTest, FitsIsAboutTheBudget) {
  const auto arena = static_cast<int64_t>(program_.arena_bytes);
  EXPECT_TRUE(Summary()["fits"]);
  EXPECT_FALSE(Summary().contains("budget_bytes"));
  EXPECT_TRUE(Summary({"m", 1, arena, 0})["fits"]);
  EXPECT_FALSE(Summary({"m", 1, arena - 1, 0})["fits"]);
  EXPECT_EQ(Summary({"m", 1, arena - 1, 0})["budget_bytes"], arena - 1);
}

}  // namespace
}  // namespace thimble
