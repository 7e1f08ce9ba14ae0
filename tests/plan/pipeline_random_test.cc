// The whole pipeline on random graphs: plans are correct, deterministic, close to the lower bound,
// and no pass increases the arena.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "tests/plan/random_graph.h"
#include "tests/plan/toy_draft.h"
#include "tests/support/model_graphs.h"
#include "thimble/base/byte_size.h"
#include "thimble/plan/memory/accounting.h"
#include "thimble/plan/verify_plan.h"

namespace thimble::toy {
namespace {

PlanOptions Without(std::set<std::string> passes) {
  PlanOptions options;
  options.limits.scratch_bytes_per_thread = 1 << 14;
  options.skipped_passes = std::move(passes);
  return options;
}

// A source of graphs, and their ops.
struct Family {
  const OpRegistry& ops;
  std::function<Graph(std::mt19937&)> make;
  uint32_t num_graphs;
};

Family ToyGraphs() {
  return {RandomGraphOps(),
          [](std::mt19937& random) { return RandomToyGraph(random, 3 + random() % 30).Take(); },
          400};
}

Family Networks() {
  return {BuiltinOps(),
          [](std::mt19937& random) {
            return RandomNetwork(random, 2 + random() % 10).Take(random() % 4 != 0);
          },
          60};
}

// With sizes rounded up to the alignment: no placement can use less.
size_t AlignedBound(const Plan& plan) {
  std::vector<Interval> intervals;
  for (const Placement& placement : plan.placements) {
    if (placement.resident) continue;
    intervals.push_back({RoundUp(placement.size_bytes, kArenaAlignment), placement.live});
  }
  return plan.residents.end_bytes + LowerBoundBytes(intervals);
}

class PipelineRandomTest : public testing::TestWithParam<Family (*)()> {
 protected:
  template <class Check>
  void ForEachGraph(const Check& check) {
    const Family family = GetParam()();
    for (uint32_t seed = 0; seed < family.num_graphs; ++seed) {
      std::mt19937 random(seed);
      SCOPED_TRACE(fmt::format("seed {}", seed));
      check(family.make(random), family.ops);
    }
  }
};

TEST_P(PipelineRandomTest, PlansAreCorrectAndNearTheBound) {
  int num_plans = 0;
  int num_at_bound = 0;
  double worst_gap = 0;
  ForEachGraph([&](const Graph& graph, const OpRegistry& ops) {
    const Plan plan = PlanToy(graph, ops, Without({}));
    const auto verified = VerifyPlan(ops, plan);
    EXPECT_TRUE(verified.ok()) << verified.error().message;
    const size_t bound = AlignedBound(plan);
    EXPECT_GE(plan.lower_bound_bytes, plan.residents.end_bytes);
    EXPECT_GE(bound, plan.lower_bound_bytes);
    EXPECT_GE(plan.arena_bytes, bound);
    ++num_plans;
    num_at_bound += plan.arena_bytes == bound ? 1 : 0;
    const auto gap = static_cast<double>(plan.arena_bytes - bound);
    worst_gap = std::max(worst_gap, gap / static_cast<double>(bound));
  });
  RecordProperty("at_bound", num_at_bound);
  RecordProperty("worst_gap_permille", static_cast<int>(1000 * worst_gap));
  EXPECT_GE(num_at_bound * 100, num_plans * 95) << num_at_bound << " of " << num_plans;
  EXPECT_LE(worst_gap, 0.02);
}

TEST_P(PipelineRandomTest, PlansAreDeterministic) {
  ForEachGraph([](const Graph& graph, const OpRegistry& ops) {
    EXPECT_EQ(PlanToy(graph, ops, Without({})), PlanToy(graph, ops, Without({})));
  });
}

TEST_P(PipelineRandomTest, EveryPassCanBeSkippedAndHelps) {
  ForEachGraph([](const Graph& graph, const OpRegistry& ops) {
    const Plan plan = PlanToy(graph, ops, Without({}));
    for (const char* pass : {"order", "in-place", "placement"}) {
      const Plan without = PlanToy(graph, ops, Without({pass}));
      const auto verified = VerifyPlan(ops, without);
      EXPECT_TRUE(verified.ok()) << pass << ": " << verified.error().message;
      EXPECT_LE(plan.lower_bound_bytes, without.lower_bound_bytes) << pass;
    }
    const Plan apart = PlanToy(graph, ops, Without({"placement"}));
    EXPECT_LE(plan.arena_bytes, apart.arena_bytes);
    EXPECT_EQ(plan.lower_bound_bytes, apart.lower_bound_bytes);
    const Plan nothing = PlanToy(graph, ops, Without({"order", "in-place", "placement"}));
    EXPECT_LE(apart.arena_bytes, nothing.arena_bytes);
  });
}

TEST_P(PipelineRandomTest, SavingsAreThoseOfTheBytesAlive) {
  ForEachGraph([](const Graph& graph, const OpRegistry& ops) {
    const Plan plan = PlanToy(graph, ops, Without({}));
    const Plan before = PlanToy(graph, ops, Without({"in-place", "order"}));
    const Plan ordered = PlanToy(graph, ops, Without({"in-place"}));
    ASSERT_EQ(plan.decisions.size(), 3U);
    const auto saved = plan.decisions[0].saved_bytes + plan.decisions[1].saved_bytes;
    EXPECT_EQ(saved, static_cast<int64_t>(before.lower_bound_bytes) -
                         static_cast<int64_t>(plan.lower_bound_bytes));
    EXPECT_GE(ordered.decisions[0].saved_bytes, 0);
    EXPECT_GE(plan.decisions[1].saved_bytes, 0);
    EXPECT_GE(plan.decisions[2].saved_bytes, 0);
  });
}

TEST_P(PipelineRandomTest, AccountsForEveryByte) {
  ForEachGraph([](const Graph& graph, const OpRegistry& ops) {
    const Plan plan = PlanToy(graph, ops, Without({}));
    const MemoryAccount account = Account(plan);
    EXPECT_EQ(Total(account.at_peak) + account.gap_bytes, plan.arena_bytes);
    EXPECT_LE(account.kept_bytes, Total(account.at_peak));
    // The live bytes are the bound minus the padding between residents.
    size_t resident_bytes = 0;
    for (const Resident& resident : plan.residents.residents) resident_bytes += resident.size_bytes;
    EXPECT_EQ(Total(account.at_peak) + plan.residents.end_bytes - resident_bytes,
              plan.lower_bound_bytes);
  });
}

std::string FamilyName(const testing::TestParamInfo<Family (*)()>& info) {
  return info.index == 0 ? "ToyGraphs" : "Networks";
}

INSTANTIATE_TEST_SUITE_P(All, PipelineRandomTest, testing::Values(&ToyGraphs, &Networks),
                         FamilyName);

}  // namespace
}  // namespace thimble::toy
