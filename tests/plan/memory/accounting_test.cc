#include "thimble/plan/memory/accounting.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/plan/planted_fault.h"
#include "tests/support/model_graphs.h"

namespace thimble::toy {
namespace {

size_t At(const CategoryBytes& bytes, Category category) {
  return bytes[static_cast<size_t>(category)];
}

// The toy plan: values of 96 bytes, scratch of 80, residents w, m (96 each) and a ring of 128.
class AccountingTest : public testing::Test {
 protected:
  static constexpr size_t kValue = 96;
  Plan plan_ = TrainingPlan();
};

TEST_F(AccountingTest, CountsResidentsInEveryStep) {
  const MemoryAccount account = Account(plan_);
  ASSERT_EQ(account.at_step.size(), 6U);
  for (const CategoryBytes& bytes : account.at_step) {
    EXPECT_EQ(At(bytes, Category::kModel), kValue);
    EXPECT_EQ(At(bytes, Category::kOptimizer), kValue);
    EXPECT_GE(At(bytes, Category::kData), 128U);
  }
}

TEST_F(AccountingTest, CountsBuffersWhileTheyLive) {
  const MemoryAccount account = Account(plan_);
  EXPECT_EQ(At(account.at_step[0], Category::kData), 128 + kValue);  // x
  EXPECT_EQ(At(account.at_step[1], Category::kData), 128U);
  const std::vector<size_t> activations = {1, 2, 2, 3, 2, 1};  // a; a b; b c; b c loss; c loss; …
  for (size_t step = 0; step < 6; ++step) {
    EXPECT_EQ(At(account.at_step[step], Category::kActivations), activations[step] * kValue);
    EXPECT_EQ(At(account.at_step[step], Category::kTransient),
              (step == 2 ? kScratchBytes : 0) + (step >= 4 ? kValue : 0));  // dw: of no parameter
  }
}

TEST_F(AccountingTest, GradientsOfParametersAreTheirOwnCategory) {
  plan_.graph.values[plan_.graph.Find("dw").index()].gradient_of = plan_.graph.Find("w");
  const MemoryAccount account = Account(plan_);
  EXPECT_EQ(At(account.at_step[5], Category::kGradients), kValue);
  EXPECT_EQ(At(account.at_step[5], Category::kTransient), 0U);
}

TEST_F(AccountingTest, PeakIsTheFirstOfTheFullestSteps) {
  // Steps 3, with b, c and the loss, and 4, with c, the loss and dw, are equally full.
  const MemoryAccount account = Account(plan_);
  EXPECT_EQ(account.peak_step, 3U);
  EXPECT_EQ(account.at_peak, account.at_step[3]);
  EXPECT_EQ(Total(account.at_peak), 128 + 5 * kValue);
}

TEST_F(AccountingTest, WhatIsNobodysIsGaps) {
  const MemoryAccount account = Account(plan_);
  EXPECT_EQ(Total(account.at_peak) + account.gap_bytes, plan_.arena_bytes);
  plan_.arena_bytes += 640;
  EXPECT_EQ(Account(plan_).gap_bytes, account.gap_bytes + 640);
}

TEST_F(AccountingTest, KeptLeavesTransientAndDataOut) {
  // Step 3: w, m, b, c and the loss.
  EXPECT_EQ(Account(plan_).kept_bytes, 5 * kValue);
}

TEST_F(AccountingTest, KeptHasAPeakOfItsOwn) {
  ScratchOf(plan_, 2).size_bytes = 1000;
  const MemoryAccount account = Account(plan_);
  EXPECT_EQ(account.peak_step, 2U);
  EXPECT_EQ(account.kept_bytes, 5 * kValue);  // at step 3 still
}

TEST_F(AccountingTest, ABufferOfSeveralValuesCountsOnceAsTheYoungest) {
  BufferOf(plan_, "dw").size_bytes = 0;
  MoveInto(plan_, "dw", "c");  // an activation until step 4, a gradient from there on
  const MemoryAccount account = Account(plan_);
  EXPECT_EQ(At(account.at_step[3], Category::kActivations), 3 * kValue);
  EXPECT_EQ(At(account.at_step[4], Category::kActivations), kValue);  // the loss
  EXPECT_EQ(At(account.at_step[4], Category::kTransient), kValue);
  EXPECT_EQ(At(account.at_step[5], Category::kTransient), kValue);
  for (size_t step = 0; step < 6; ++step) {
    size_t alive = 128 + 2 * kValue;
    for (const Placement& placement : plan_.placements) {
      if (!placement.resident && placement.live.Contains(step)) alive += placement.size_bytes;
    }
    EXPECT_EQ(Total(account.at_step[step]), alive) << step;
  }
}

TEST_F(AccountingTest, APlanWithoutStepsHasItsResidents) {
  Graph graph;
  AddInput(graph, "w", Role::kParameter, {24});
  Plan plan = NaivePlanner(graph).Run();
  const MemoryAccount account = Account(plan);
  EXPECT_EQ(At(account.at_peak, Category::kModel), kValue);
  EXPECT_EQ(Total(account.at_peak) + account.gap_bytes, plan.arena_bytes);
}

TEST_F(AccountingTest, LargestComeFirst) {
  ScratchOf(plan_, 2).size_bytes = 1000;
  const auto largest = LargestAt(Holdings(plan_), 2, 2);
  ASSERT_EQ(largest.size(), 2U);
  EXPECT_EQ(largest[0].buffer, static_cast<int64_t>(plan_.steps[2].scratch.index()));
  EXPECT_EQ(largest[0].size_bytes, 1000U);
  EXPECT_EQ(largest[1].name, "ring");
  EXPECT_EQ(largest[1].size_bytes, 128U);
}

TEST_F(AccountingTest, LargestAreOnlyThoseAlive) {
  std::vector<std::string> names;
  for (const Holding& held : LargestAt(Holdings(plan_), 5, 100)) names.push_back(held.name);
  EXPECT_EQ(names, (std::vector<std::string>{"ring", "w", "m", "loss", "dw"}));
  EXPECT_TRUE(LargestAt(Holdings(plan_), 5, 0).empty());
}

TEST_F(AccountingTest, HoldingsSayWhatTheyAre) {
  const auto holdings = Holdings(plan_);
  const auto find = [&](const std::string& name) -> const Holding& {
    for (const Holding& held : holdings) {
      if (held.name == name) return held;
    }
    ADD_FAILURE() << "no " << name;
    return holdings.front();
  };
  EXPECT_TRUE(find("w").resident);
  EXPECT_EQ(find("w").shape, "(24) f32");
  EXPECT_EQ(find("w").phase, "");
  EXPECT_EQ(find("ring").buffer, Holding::kNoBuffer);
  EXPECT_EQ(find("b").phase, "forward");
  EXPECT_EQ(find("dw").phase, "backward");
  EXPECT_EQ(find("b").live, plan_.values[plan_.graph.Find("b").index()].live);
  const Holding scratch = LargestAt(holdings, 2, 100).back();
  EXPECT_EQ(scratch.size_bytes, kScratchBytes);
  EXPECT_EQ(scratch.shape, "");
  EXPECT_EQ(scratch.category, Category::kTransient);
}

TEST_F(AccountingTest, ValuesOfOneBufferFollowEachOther) {
  BufferOf(plan_, "dw").size_bytes = 0;
  MoveInto(plan_, "dw", "c");
  std::vector<LiveRange> lives;
  for (const Holding& held : Holdings(plan_)) {
    const bool either = held.name == "c" || held.name == "dw";
    if (either && held.size_bytes > 0) lives.push_back(held.live);
  }
  EXPECT_EQ(lives, (std::vector<LiveRange>{{2, 4}, {4, 6}}));
}

TEST(Holdings, NoByteIsHeldTwiceAtAStep) {
  const Plan plan = PlanGraph(TrainingGraph("wrn-10-1", 3));
  const auto holdings = Holdings(plan);
  for (size_t step = 0; step < plan.steps.size(); step += 7) {
    auto alive = LargestAt(holdings, step, holdings.size());
    std::sort(alive.begin(), alive.end(),
              [](const Holding& a, const Holding& b) { return a.offset < b.offset; });
    for (size_t i = 1; i < alive.size(); ++i) {
      EXPECT_LE(alive[i - 1].offset + alive[i - 1].size_bytes, alive[i].offset) << alive[i].name;
    }
  }
}

TEST(Holdings, BelongToLayers) {
  for (const Holding& held : Holdings(PlanGraph(TrainingGraph("wrn-10-1", 3)))) {
    if (held.category == Category::kData) continue;
    EXPECT_NE(held.layer, "") << held.name;
    if (held.name == "block1.layer.0.conv1.weight") {
      EXPECT_EQ(held.layer, "block1.layer.0.conv1");
    }
  }
}

TEST_F(AccountingTest, InPlaceSavesWhatItShares) {
  PlanOptions apart;
  apart.skipped_passes = {"in-place", "order"};
  PlanOptions shared;
  shared.skipped_passes = {"order"};
  const Graph graph = TrainingGraph("wrn-10-1", 2);
  const MemoryAccount with = Account(PlanGraph(graph, shared));
  const MemoryAccount without = Account(PlanGraph(graph, apart));
  size_t num_smaller = 0;
  for (size_t step = 0; step < with.at_step.size(); ++step) {
    EXPECT_LE(Total(with.at_step[step]), Total(without.at_step[step])) << step;
    num_smaller += Total(with.at_step[step]) < Total(without.at_step[step]) ? 1 : 0;
  }
  EXPECT_GT(num_smaller, 0U);
  EXPECT_LE(with.kept_bytes, without.kept_bytes);
}

}  // namespace
}  // namespace thimble::toy
