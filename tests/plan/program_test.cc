#include "thimble/plan/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plan/planted_fault.h"
#include "tests/support/model_graphs.h"

namespace thimble::toy {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Graph EvaluationOf(const OpRegistry& ops) {
  Graph graph;
  const ValueId x = AddInput(graph, "x", Role::kInput, {24});
  const ValueId w = AddInput(graph, "w", Role::kParameter, {24});
  graph.outputs = Append(graph, ops, "sum2", {Append(graph, ops, "copy", {x}, {})[0], w}, {});
  return graph;
}

Result<Program> PlanBoth(const std::vector<Resident>& extra = {}, const PlanOptions& options = {}) {
  return PlanProgram({{"train", MakeTrainingGraph(Ops())}, {"evaluate", EvaluationOf(Ops())}},
                     Ops(), extra, options);
}

TEST(ProgramTest, PlansShareTheirResidents) {
  const auto program = PlanBoth();
  ASSERT_TRUE(program.ok());
  ASSERT_EQ(program->residents.residents.size(), 2U);  // w once, m
  EXPECT_EQ(program->residents.end_bytes, 256U);
  for (const Plan& plan : program->plans) {
    EXPECT_EQ(plan.residents, program->residents);
    EXPECT_EQ(plan.placement(plan.values[plan.graph.Find("w").index()].buffer).offset,
              program->residents.Find("w")->offset);
    for (const Placement& placement : plan.placements) {
      if (placement.resident) continue;
      EXPECT_GE(placement.offset, program->residents.end_bytes);
    }
  }
}

TEST(ProgramTest, ResidentsHaveCategoriesAndLinesOfTheirOwn) {
  const auto program = PlanBoth({{"ring", 5, 12345, Category::kData}});
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(program->residents.residents,
            (std::vector<Resident>{{"w", 96, 0, Category::kModel},
                                   {"m", 96, 128, Category::kOptimizer},
                                   {"ring", 8, 256, Category::kData}}));
  EXPECT_EQ(program->residents.end_bytes, 320U);
}

TEST(ProgramTest, ArenaIsThatOfTheLargestPlan) {
  const auto program = PlanBoth();
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(program->arena_bytes,
            std::max(program->plans[0].arena_bytes, program->plans[1].arena_bytes));
  EXPECT_GT(program->plans[0].arena_bytes, program->plans[1].arena_bytes);
}

TEST(ProgramTest, FindsPlansByName) {
  const auto program = PlanBoth();
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(program->Find("train"), &program->plans[0]);
  EXPECT_EQ(program->Find("evaluate"), &program->plans[1]);
  EXPECT_EQ(program->Find("test"), nullptr);
}

TEST(ProgramTest, RefusesOneNameWithTwoSizes) {
  Graph other;
  AddInput(other, "w", Role::kParameter, {25});
  const auto program =
      PlanProgram({{"train", MakeTrainingGraph(Ops())}, {"other", other}}, Ops(), {}, {});
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(program.error().message, HasSubstr("'w' has different sizes"));
}

TEST(ProgramTest, RefusesOneNameWithTwoUses) {
  const auto program = PlanBoth({{"w", 96, 0, Category::kData}});
  ASSERT_FALSE(program.ok());
  EXPECT_THAT(program.error().message, HasSubstr("'w'"));
}

TEST(ProgramTest, ErrorsNameThePlan) {
  PlanOptions options;
  options.skipped_passes = {"nonsense"};
  const auto program = PlanBoth({}, options);
  ASSERT_FALSE(program.ok());
  EXPECT_THAT(program.error().message, StartsWith("no pass 'nonsense'"));
}

TEST(ProgramTest, EvaluationOfANetworkFitsIntoTheArenaOfItsTraining) {
  const Program program = PlanGraphs({{"train", TrainingGraph("wrn-10-1", 4, TinyImages())},
                                      {"evaluate", EvaluationGraph("wrn-10-1", 4, TinyImages())}});
  const Plan& evaluate = *program.Find("evaluate");
  EXPECT_EQ(program.arena_bytes, program.Find("train")->arena_bytes);
  EXPECT_LT(evaluate.arena_bytes, program.arena_bytes);
  // Evaluation needs parameters and statistics, and does not touch the optimizer's state.
  EXPECT_FALSE(evaluate.graph.Find("momentum.conv1.weight").valid());
  EXPECT_NE(evaluate.residents.Find("momentum.conv1.weight"), nullptr);
}

}  // namespace
}  // namespace thimble::toy
