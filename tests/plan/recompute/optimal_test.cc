#include "thimble/plan/recompute/optimal.h"

#include <gtest/gtest.h>

#include <iostream>
#include <random>

#include "tests/plan/random_graph.h"
#include "tests/plan/random_versions.h"
#include "tests/plan/recompute/brute_force.h"
#include "tests/plan/recompute/free_optimum.h"
#include "tests/plan/toy_draft.h"
#include "thimble/plan/recompute/apply_schedule.h"
#include "thimble/plan/recompute/candidates.h"

namespace thimble {

std::ostream& operator<<(std::ostream& out, const TradeOff& t) {
  return out << t.bytes << " bytes " << t.work;
}

namespace {

struct Setting {
  PlanDraft draft;
  Chain chain;
};

Setting MakeSetting(const Graph& graph, const OpRegistry& ops, size_t max_stages) {
  Setting setting{toy::MakeDraft(graph, ops), {}};
  setting.chain = MakeChain(setting.draft, ops, {}, max_stages).value();
  return setting;
}

// Fewest bytes first, each with less work than the one before.
std::vector<TradeOff> BestOf(std::vector<toy::Outcome> outcomes) {
  std::sort(outcomes.begin(), outcomes.end(), [](const auto& a, const auto& b) {
    return std::pair(a.bytes, a.work) < std::pair(b.bytes, b.work);
  });
  std::vector<TradeOff> best;
  for (const toy::Outcome& outcome : outcomes) {
    if (best.empty() || outcome.work < best.back().work)
      best.push_back({outcome.bytes, outcome.work});
  }
  return best;
}

void ExpectEqualToBruteForce(const Setting& setting, const OpRegistry& ops, int seed) {
  const auto expected =
      BestOf(toy::EveryScheduleOfTheClass(setting.draft.graph, ops, setting.chain).Play());
  const OptimalSchedules optimal(setting.draft.graph, ops, setting.chain);
  const auto actual = optimal.tradeoffs();
  EXPECT_FALSE(optimal.thinned_out());
  ASSERT_EQ(actual, expected) << "seed " << seed << "\n" << ToString(setting.draft.graph);
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(actual[i].bytes, expected[i].bytes) << "seed " << seed << " point " << i;
    EXPECT_DOUBLE_EQ(actual[i].work, expected[i].work) << "seed " << seed << " point " << i;
    EXPECT_DOUBLE_EQ(RerunWork(setting.chain, optimal.Make(actual[i].bytes)), actual[i].work)
        << "seed " << seed << " point " << i;
  }
}

TEST(OptimalSchedules, EqualBruteForceOnRandomToyGraphs) {
  int compared = 0;
  for (int seed = 0; compared < 400; ++seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    const Graph graph = toy::RandomToyGraph(random, 4 + static_cast<size_t>(seed) % 9).Take();
    const Setting setting = MakeSetting(graph, toy::RandomGraphOps(), 3 + random() % 4);
    if (setting.chain.num_stages == 0) continue;
    ExpectEqualToBruteForce(setting, toy::RandomGraphOps(), seed);
    ++compared;
    if (HasFailure()) return;
  }
}

TEST(OptimalSchedules, EqualBruteForceOnRandomNetworks) {
  for (int seed = 0; seed < 60; ++seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    const Graph graph = toy::RandomNetwork(random, 2 + static_cast<size_t>(seed) % 5).Take(true);
    ExpectEqualToBruteForce(MakeSetting(graph, BuiltinOps(), 5), BuiltinOps(), seed);
    if (HasFailure()) return;
  }
}

// Backward overwrites values that forward reads, so some values cannot be rebuilt.
TEST(OptimalSchedules, EqualBruteForceOnGraphsWithVersions) {
  for (int seed = 0; seed < 150; ++seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    const Graph graph = toy::RandomVersionedGraph(random, 4 + static_cast<size_t>(seed) % 9).Take();
    ExpectEqualToBruteForce(MakeSetting(graph, toy::RandomGraphOps(), 3 + random() % 4),
                            toy::RandomGraphOps(), seed);
    if (HasFailure()) return;
  }
}

// Drafts have the bytes that the trade-offs promise; the model may only be too high.
TEST(OptimalSchedules, DraftsKeepTheirPromise) {
  for (int seed = 0; seed < 40; ++seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    const Graph graph = toy::RandomNetwork(random, 8).Take(true);
    const Setting setting = MakeSetting(graph, BuiltinOps(), kMaxStages);
    const OptimalSchedules optimal(setting.draft.graph, BuiltinOps(), setting.chain);
    size_t fixed_bytes = 0;
    for (size_t v = 0; v < graph.values.size(); ++v) {
      const bool fixed = setting.chain.values[v].kind == ChainValue::Kind::kFixed;
      if (fixed && !IsPersistent(graph.values[v].role)) {
        fixed_bytes += setting.chain.values[v].size_bytes;
      }
    }
    for (const TradeOff& tradeoff : optimal.tradeoffs()) {
      const PlanDraft draft =
          ApplySchedule(setting.draft, setting.chain, optimal.Make(tradeoff.bytes));
      EXPECT_LE(LiveArenaBytes(draft, BuiltinOps(), {}), tradeoff.bytes + fixed_bytes)
          << "seed " << seed;
    }
  }
}

// A chain of equal stages whose backward steps each read their stage's input.
Graph EqualChain(size_t length) {
  const OpRegistry& ops = toy::RandomGraphOps();
  Graph graph;
  std::vector<ValueId> values = {toy::AddInput(graph, "x", Role::kInput, {16})};
  for (size_t i = 0; i < length; ++i) {
    values.push_back(
        toy::Append(graph, ops, "copy", {values.back()}, {"v" + std::to_string(i)})[0]);
  }
  ValueId gradient = toy::Append(graph, ops, "copy", {values.back()}, {"d"}, Phase::kBackward)[0];
  for (size_t i = length; i-- > 1;) {
    gradient = toy::Append(graph, ops, "mix", {gradient, values[i]}, {"d" + std::to_string(i)},
                           Phase::kBackward)[0];
  }
  graph.outputs = {gradient};
  return graph;
}

TEST(OptimalSchedules, FewerBytesTakeMoreWork) {
  const Setting setting = MakeSetting(EqualChain(9), toy::RandomGraphOps(), kMaxStages);
  const OptimalSchedules optimal(setting.draft.graph, toy::RandomGraphOps(), setting.chain);
  const auto tradeoffs = optimal.tradeoffs();
  ASSERT_GT(tradeoffs.size(), 3U);
  for (size_t i = 1; i < tradeoffs.size(); ++i) {
    EXPECT_GT(tradeoffs[i].bytes, tradeoffs[i - 1].bytes);
    EXPECT_LT(tradeoffs[i].work, tradeoffs[i - 1].work);
  }
  EXPECT_EQ(tradeoffs.back().work, 0);
  // With little memory, stages run again more than once.
  EXPECT_GT(tradeoffs.front().work, 9 * setting.chain.reruns[0].work);
}

// How far the class is from the optimum: prints the figures in docs/techniques/recompute.md.
TEST(OptimalSchedules, AreCloseToTheFreeOptimumOfTinyGraphs) {
  int points = 0;
  int equal = 0;
  double excess = 0;
  for (int seed = 0; seed < 150; ++seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    const Graph graph = toy::RandomToyGraph(random, 5 + random() % 6).Take();
    const Setting setting = MakeSetting(graph, toy::RandomGraphOps(), kMaxStages);
    const toy::FreeOptimum free(setting.draft.graph, toy::RandomGraphOps(), setting.chain);
    if (setting.chain.num_stages == 0 || free.num_values() > 7) continue;
    double forward = 0;
    for (const Rerun& rerun : setting.chain.reruns) forward += rerun.work;
    const OptimalSchedules optimal(setting.draft.graph, toy::RandomGraphOps(), setting.chain);
    for (const TradeOff& tradeoff : optimal.tradeoffs()) {
      const double least = free.LeastWork(tradeoff.bytes);
      EXPECT_LE(least, tradeoff.work * (1 + 1e-12)) << "seed " << seed;
      ++points;
      equal += least >= tradeoff.work * (1 - 1e-12) ? 1 : 0;
      excess += (tradeoff.work - least) / forward;
    }
  }
  std::cout << fmt::format(
      "{} of {} trade-offs are the free optimum; on average {:.2f} % of forward more\n", equal,
      points, 100 * excess / points);
  EXPECT_GT(points, 100);
  EXPECT_GT(equal, points / 2);
}

TEST(OptimalSchedules, NothingToRebuildIsOneTradeOff) {
  const Setting setting = MakeSetting(EqualChain(1), toy::RandomGraphOps(), kMaxStages);
  const OptimalSchedules optimal(setting.draft.graph, toy::RandomGraphOps(), setting.chain);
  ASSERT_EQ(optimal.tradeoffs().size(), 1U);
  EXPECT_EQ(optimal.tradeoffs()[0].work, 0);
}

TEST(OptimalSchedulesDeathTest, MakeWantsWhatCanBeReached) {
  const Setting setting = MakeSetting(EqualChain(4), toy::RandomGraphOps(), kMaxStages);
  const OptimalSchedules optimal(setting.draft.graph, toy::RandomGraphOps(), setting.chain);
  EXPECT_DEATH(optimal.Make(optimal.tradeoffs().front().bytes - 1), "no schedule");
}

}  // namespace
}  // namespace thimble
