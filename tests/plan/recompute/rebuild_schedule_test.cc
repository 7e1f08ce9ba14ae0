#include "thimble/plan/recompute/rebuild_schedule.h"

#include <gtest/gtest.h>

#include "tests/plan/recompute/toy_chain.h"
#include "tests/support/model_graphs.h"

namespace thimble {
namespace {

std::vector<size_t> RunsAgain(const Chain& chain, const RebuildSchedule& schedule) {
  std::vector<bool> has_run(chain.forward.size(), false);
  std::vector<size_t> again;
  for (const ChainStep& step : schedule) {
    if (step.backward) continue;
    if (has_run[step.position]) again.push_back(step.position);
    has_run[step.position] = true;
  }
  return again;
}

TEST(RebuildSchedule, KeepingAllRunsNothingAgain) {
  const toy::ToyChain toy;
  const RebuildSchedule schedule =
      MakeNamedSchedule(toy.graph(), toy::RandomGraphOps(), toy.chain, RecomputeSpec{});
  EXPECT_EQ(schedule.size(), toy.chain.forward.size() + toy.chain.backward.size());
  EXPECT_TRUE(RunsAgain(toy.chain, schedule).empty());
}

TEST(RebuildSchedule, DroppedValuesAreRebuiltRightBeforeTheyAreRead) {
  const toy::ToyChain toy;
  std::vector<bool> kept(toy.chain.values.size(), true);
  kept[toy.b.index()] = kept[toy.c.index()] = false;
  const RebuildSchedule schedule = ScheduleKeeping(toy.graph(), toy.chain, kept);
  // c needs b: both run before dc; b is kept for db.
  const RebuildSchedule expected = {{false, 0}, {false, 1}, {false, 2}, {false, 3}, {false, 1},
                                    {false, 2}, {true, 0},  {true, 1},  {true, 2}};
  EXPECT_EQ(schedule, expected);
}

TEST(RebuildSchedule, WhatOnlyLeadsToOthersIsBuiltEachTime) {
  const toy::ToyChain toy;
  std::vector<bool> kept(toy.chain.values.size(), false);
  const RebuildSchedule schedule = ScheduleKeeping(toy.graph(), toy.chain, kept);
  EXPECT_EQ(RunsAgain(toy.chain, schedule), (std::vector<size_t>{0, 1, 2}));
}

class NamedSchedules : public ::testing::Test {
 protected:
  NamedSchedules() {
    draft_ = toy::MakeDraft(TrainingGraph("wrn-16-1", 2), BuiltinOps());
    chain_ = MakeChain(draft_, BuiltinOps(), {}).value();
  }
  // Ops and layers of the nodes that run again.
  std::vector<std::string> Again(const RecomputeSpec& spec) const {
    std::vector<std::string> nodes;
    const RebuildSchedule schedule = MakeNamedSchedule(draft_.graph, BuiltinOps(), chain_, spec);
    for (size_t position : RunsAgain(chain_, schedule)) {
      const Node& node = draft_.graph.node(chain_.forward[position]);
      nodes.push_back(node.op + " " + node.layer);
    }
    return nodes;
  }

  PlanDraft draft_;
  Chain chain_;
};

TEST_F(NamedSchedules, CheapRebuildsNormsOnly) {
  const auto nodes = Again({.kind = RecomputeKind::kCheap});
  EXPECT_EQ(nodes.size(), 12U);  // two in each of six blocks; the head's output is not read
  for (const std::string& node : nodes) EXPECT_EQ(node.rfind("batch_norm ", 0), 0U) << node;
}

TEST_F(NamedSchedules, BlocksKeepWhatPassesBetweenThem) {
  const auto nodes = Again({.kind = RecomputeKind::kBlocks});
  for (const std::string& node : nodes) {
    // The output of a block is kept, so neither its last convolution nor its shortcut runs again.
    EXPECT_EQ(node.find("conv2d_add"), std::string::npos) << node;
    EXPECT_EQ(node.find("convShortcut"), std::string::npos) << node;
    EXPECT_EQ(node.find("conv2d conv1"), std::string::npos) << node;
  }
  EXPECT_EQ(std::count_if(nodes.begin(), nodes.end(),
                          [](const std::string& n) { return n.rfind("conv2d ", 0) == 0; }),
            6);
}

TEST_F(NamedSchedules, FewerKeptValuesRunMoreAgain) {
  const size_t one = Again({.kind = RecomputeKind::kBlocks}).size();
  const size_t two = Again({.kind = RecomputeKind::kBlocks, .stride = 2}).size();
  const size_t all = Again({.kind = RecomputeKind::kBlocks, .stride = 100}).size();
  EXPECT_LT(one, two);
  EXPECT_LT(two, all);
  // There are seven values between the stem, six blocks and the head: every third is kept.
  EXPECT_EQ(Again({.kind = RecomputeKind::kSqrt}),
            Again({.kind = RecomputeKind::kBlocks, .stride = 3}));
}

}  // namespace
}  // namespace thimble
