#include "thimble/plan/recompute/apply_schedule.h"

#include <gtest/gtest.h>

#include "tests/plan/recompute/toy_chain.h"
#include "thimble/graph/verify_graph.h"

namespace thimble {
namespace {

TEST(ApplySchedule, WithoutRepetitionsTheGraphIsTheSame) {
  const toy::ToyChain toy;
  const PlanDraft applied = ApplySchedule(
      toy.draft, toy.chain,
      ScheduleKeeping(toy.graph(), toy.chain, std::vector<bool>(toy.chain.values.size(), true)));
  EXPECT_EQ(applied.graph, toy.graph());
  EXPECT_EQ(applied.order, toy.draft.order);
}

TEST(ApplySchedule, WhatRunsAgainIsANodeOfItsOwn) {
  const toy::ToyChain toy;
  std::vector<bool> kept(toy.chain.values.size(), true);
  kept[toy.b.index()] = false;
  const PlanDraft applied =
      ApplySchedule(toy.draft, toy.chain, ScheduleKeeping(toy.graph(), toy.chain, kept));
  ASSERT_TRUE(VerifyGraph(applied.graph, toy::RandomGraphOps()).ok());
  ASSERT_EQ(applied.graph.nodes.size(), toy.graph().nodes.size() + 1);
  const ValueId again = applied.graph.Find("b.again");
  ASSERT_TRUE(again.valid());
  const Node& node = applied.graph.node(applied.graph.value(again).producer);
  EXPECT_EQ(node.op, "copy");
  EXPECT_EQ(node.phase, Phase::kBackward);
  EXPECT_EQ(node.inputs, std::vector<ValueId>{toy.a});
  EXPECT_EQ(applied.graph.value(again).role, Role::kActivation);
  // Backward reads the new copy, forward the old one.
  EXPECT_EQ(applied.graph.node(applied.graph.value(toy.db).producer).inputs[1], again);
  EXPECT_EQ(applied.graph.node(applied.graph.value(toy.c).producer).inputs[0], toy.b);
  EXPECT_EQ(applied.kernels.size(), applied.graph.nodes.size());
  EXPECT_EQ(applied.storage.size(), applied.graph.values.size());
}

TEST(ApplySchedule, NamesStayApart) {
  const toy::ToyChain toy;
  RebuildSchedule schedule =
      ScheduleKeeping(toy.graph(), toy.chain, std::vector<bool>(toy.chain.values.size(), true));
  schedule.insert(schedule.end() - 1, {{false, 1}, {false, 1}});
  const PlanDraft applied = ApplySchedule(toy.draft, toy.chain, schedule);
  EXPECT_TRUE(applied.graph.Find("b.again").valid());
  EXPECT_TRUE(applied.graph.Find("b.again2").valid());
  EXPECT_TRUE(VerifyGraph(applied.graph, toy::RandomGraphOps()).ok());
}

}  // namespace
}  // namespace thimble
