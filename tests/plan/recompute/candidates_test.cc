#include "thimble/plan/recompute/candidates.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/plan/random_graph.h"
#include "tests/plan/toy_draft.h"
#include "thimble/plan/recompute/apply_schedule.h"

namespace thimble {
namespace {

const PlanOptions kNoOptions;

PlanDraft RandomDraft(uint32_t seed) {
  std::mt19937 random(seed);
  return toy::MakeDraft(toy::RandomNetwork(random, 7).Take(true), BuiltinOps());
}

double WorkOf(const PlanDraft& draft) {
  double work = 0;
  for (const Node& node : draft.graph.nodes) {
    const bool rebuilds = node.phase == Phase::kBackward &&
                          draft.graph.value(node.outputs[0]).role == Role::kActivation;
    if (rebuilds) work += WorkOf(draft.graph, BuiltinOps(), node);
  }
  return work;
}

TEST(Candidates, ALowerLimitNeverGivesALargerArenaOrLessWork) {
  for (uint32_t seed = 0; seed < 6; ++seed) {
    const PlanDraft draft = RandomDraft(seed);
    Candidates candidates(BuiltinOps(), kNoOptions);
    ASSERT_TRUE(candidates.Add(std::span(&draft, 1)).ok());
    const size_t plain = PlacedArenaBytes(draft, BuiltinOps(), {});
    const size_t smallest = PlacedArenaBytes(candidates.Smallest(), BuiltinOps(), {});
    size_t arena_before = SIZE_MAX;
    double work_before = 0;
    const size_t stride = std::max<size_t>(1, (plain - smallest) / 17);
    std::vector<size_t> limits = {smallest};
    while (limits.back() < plain) limits.push_back(limits.back() + stride);
    std::reverse(limits.begin(), limits.end());
    for (size_t limit : limits) {
      const auto chosen = candidates.LeastWorkWithin(limit);
      ASSERT_TRUE(chosen.has_value()) << "seed " << seed << " limit " << limit;
      const size_t arena = PlacedArenaBytes(*chosen, BuiltinOps(), {});
      EXPECT_LE(arena, limit) << "seed " << seed;
      EXPECT_LE(arena, arena_before) << "seed " << seed << " limit " << limit;
      EXPECT_GE(WorkOf(*chosen), work_before) << "seed " << seed << " limit " << limit;
      arena_before = arena;
      work_before = WorkOf(*chosen);
    }
    EXPECT_EQ(arena_before, smallest) << "seed " << seed;
    EXPECT_FALSE(candidates.LeastWorkWithin(smallest - 1).has_value()) << "seed " << seed;
  }
}

TEST(Candidates, AnyWithinIsThereWhereTheSmallestFits) {
  for (uint32_t seed = 0; seed < 6; ++seed) {
    const PlanDraft draft = RandomDraft(seed);
    const auto any_within = [&](size_t bytes) {
      Candidates candidates(BuiltinOps(), kNoOptions);
      EXPECT_TRUE(candidates.Add(std::span(&draft, 1)).ok());
      const PlanDraft any = candidates.AnyWithin(bytes);
      return draft.residents.end_bytes + any.placed->plan.peak_bytes;
    };
    Candidates candidates(BuiltinOps(), kNoOptions);
    ASSERT_TRUE(candidates.Add(std::span(&draft, 1)).ok());
    const size_t smallest = PlacedArenaBytes(candidates.Smallest(), BuiltinOps(), {});
    for (const size_t bytes : {SIZE_MAX, 2 * smallest, smallest}) {
      EXPECT_LE(any_within(bytes), bytes) << "seed " << seed;
    }
    for (const size_t bytes : {smallest - 1, smallest / 2, size_t{1}}) {
      EXPECT_GT(any_within(bytes), bytes) << "seed " << seed;
    }
  }
}

TEST(Candidates, AreNeverWorseThanANamedStrategy) {
  for (uint32_t seed = 0; seed < 6; ++seed) {
    const PlanDraft draft = RandomDraft(seed);
    const Chain chain = MakeChain(draft, BuiltinOps(), {}).value();
    Candidates candidates(BuiltinOps(), kNoOptions);
    ASSERT_TRUE(candidates.Add(std::span(&draft, 1)).ok());
    for (const char* name :
         {"none", "cheap", "sqrt", "blocks", "blocks:2", "blocks:3", "blocks:7"}) {
      const RecomputeSpec spec = ParseRecompute(name).value();
      const PlanDraft named =
          ApplySchedule(draft, chain, MakeNamedSchedule(draft.graph, BuiltinOps(), chain, spec));
      const size_t arena = PlacedArenaBytes(named, BuiltinOps(), {});
      const auto chosen = candidates.LeastWorkWithin(arena);
      ASSERT_TRUE(chosen.has_value()) << name << " seed " << seed;
      EXPECT_LE(WorkOf(*chosen), WorkOf(named) * (1 + 1e-12)) << name << " seed " << seed;
      EXPECT_LE(PlacedArenaBytes(candidates.Smallest(), BuiltinOps(), {}), arena);
    }
  }
}

TEST(Candidates, OrdersAreTriedUnlessLeftOut) {
  const PlanDraft draft = RandomDraft(5);
  EXPECT_GT(DraftsToTry(draft, {}).size(), 1U);
  PlanOptions options;
  options.skipped_passes = {"order"};
  EXPECT_EQ(DraftsToTry(draft, options).size(), 1U);
}

TEST(Candidates, ArenasCountResidentsAndSkippedPasses) {
  PlanDraft draft = RandomDraft(2);
  const size_t before = PlacedArenaBytes(draft, BuiltinOps(), {});
  EXPECT_LE(LiveArenaBytes(draft, BuiltinOps(), {}), before);
  PlanOptions apart;
  apart.skipped_passes = {"placement"};
  EXPECT_GT(PlacedArenaBytes(draft, BuiltinOps(), apart), before);
  draft.residents.end_bytes += 6400;
  EXPECT_EQ(PlacedArenaBytes(draft, BuiltinOps(), {}), before + 6400);
}

}  // namespace
}  // namespace thimble
