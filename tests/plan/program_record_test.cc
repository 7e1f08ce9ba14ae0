#include "thimble/plan/program_record.h"

#include <gtest/gtest.h>

#include "tests/support/model_graphs.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/plan/cost.h"

namespace thimble {
namespace {

class ProgramRecordTest : public testing::Test {
 protected:
  Program program_ = PlanGraphs({{"train 3", TrainingGraph("wrn-10-1", 3, TinyImages())},
                                 {"evaluate 2", EvaluationGraph("wrn-10-1", 2, TinyImages())}});
  ProgramRecord record_ = RecordOf(program_, BuiltinOps());
};

TEST_F(ProgramRecordTest, HoldsEveryPlanStepAndTechnique) {
  EXPECT_EQ(record_.arena_bytes, program_.arena_bytes);
  ASSERT_EQ(record_.plans.size(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    const Plan& plan = program_.plans[i];
    EXPECT_EQ(record_.plans[i].name, program_.names[i]);
    EXPECT_EQ(record_.plans[i].device, "cpu");
    EXPECT_EQ(record_.plans[i].arena_bytes, plan.arena_bytes);
    EXPECT_EQ(record_.plans[i].lower_bound_bytes, plan.lower_bound_bytes);
    EXPECT_EQ(record_.plans[i].steps.size(), plan.steps.size());
    EXPECT_EQ(record_.plans[i].techniques.size(), plan.decisions.size());
    EXPECT_EQ(record_.plans[i].holdings, Holdings(plan));
  }
}

TEST_F(ProgramRecordTest, StepsNameWhatTheyDo) {
  const std::vector<StepRecord>& steps = record_.plans[0].steps;
  EXPECT_EQ(steps.front().op, "image_normalize");
  EXPECT_EQ(steps.front().layer, "normalize");
  EXPECT_EQ(steps.front().phase, "forward");
  EXPECT_EQ(steps.front().inputs, std::vector<std::string>{"images"});
  EXPECT_EQ(steps.front().outputs.size(), 1U);
  EXPECT_NE(steps.front().kernel, "");
  EXPECT_EQ(steps.back().phase, "update");
}

TEST_F(ProgramRecordTest, ArithmeticOfTheStepsAddsUp) {
  const GraphCost cost = CostOf(program_.plans[0].graph, BuiltinOps());
  int64_t flops = 0;
  for (const StepRecord& step : record_.plans[0].steps) flops += step.flops;
  EXPECT_EQ(flops, cost.step_flops);
  EXPECT_EQ(record_.plans[0].step_flops, cost.step_flops);
  EXPECT_EQ(record_.plans[0].forward_flops, cost.forward_flops);
  EXPECT_LT(record_.plans[1].step_flops, cost.step_flops);
}

TEST_F(ProgramRecordTest, TechniquesHaveClassAndSaving) {
  const std::vector<TechniqueRecord>& techniques = record_.plans[0].techniques;
  ASSERT_EQ(techniques.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    const Decision& decision = program_.plans[0].decisions[i];
    EXPECT_EQ(techniques[i].name, decision.pass);
    EXPECT_EQ(techniques[i].exactness, "same-bits");
    EXPECT_EQ(techniques[i].saved_bytes, decision.saved_bytes);
    EXPECT_EQ(techniques[i].done, decision.what);
  }
}

TEST_F(ProgramRecordTest, TechniquesOfTheGraphComeFirst) {
  const TechniqueRecord ghost{"ghost", "lossy", "in general", "here", 3, 4};
  const Program program =
      PlanGraphs({{"train 3", TrainingGraph("wrn-10-1", 3, TinyImages()), 0, {ghost}},
                  {"evaluate 2", EvaluationGraph("wrn-10-1", 2, TinyImages())}});
  const ProgramRecord record = RecordOf(program, BuiltinOps());
  ASSERT_EQ(record.plans[0].techniques.size(), record_.plans[0].techniques.size() + 1);
  EXPECT_EQ(record.plans[0].techniques[0], ghost);
  EXPECT_EQ(record.plans[0].techniques[1], record_.plans[0].techniques[0]);
  EXPECT_EQ(record.plans[1].techniques, record_.plans[1].techniques);
}

TEST_F(ProgramRecordTest, CategoriesAndGapsAreTheArena) {
  for (size_t i = 0; i < 2; ++i) {
    const MemoryAccount account = Account(record_.plans[i]);
    EXPECT_EQ(Total(account.at_peak) + account.gap_bytes, record_.plans[i].arena_bytes);
    EXPECT_EQ(account.at_step, Account(program_.plans[i]).at_step);
  }
}

TEST_F(ProgramRecordTest, AStepIsAllRunsOfItsPlans) {
  EXPECT_EQ(StepCost(record_).step_flops, 0);  // none of them runs in a step
  const Program program =
      PlanGraphs({{"train 3 of 9", TrainingGraph("wrn-10-1", 3, TinyImages()), 3},
                  {"evaluate 2", EvaluationGraph("wrn-10-1", 2, TinyImages())}});
  const ProgramRecord record = RecordOf(program, BuiltinOps());
  EXPECT_EQ(record.plans[0].runs_per_step, 3);
  EXPECT_EQ(record.plans[1].runs_per_step, 0);
  for (const GraphCost& cost : {StepCost(record), StepCost(program, BuiltinOps())}) {
    EXPECT_EQ(cost.step_flops, 3 * record.plans[0].step_flops);
    EXPECT_EQ(cost.forward_flops, 3 * record.plans[0].forward_flops);
    EXPECT_EQ(cost.recompute_flops, 0);
  }
}

}  // namespace
}  // namespace thimble
