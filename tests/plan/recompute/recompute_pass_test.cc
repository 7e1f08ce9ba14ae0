#include "thimble/plan/recompute/recompute_pass.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/plan/random_graph.h"
#include "tests/plan/toy_draft.h"
#include "tests/support/model_graphs.h"
#include "thimble/plan/cost.h"
#include "thimble/plan/pipeline.h"

namespace thimble {
namespace {

PlanOptions Asking(const char* text) {
  PlanOptions options;
  options.recompute = ParseRecompute(text).value();
  return options;
}

TEST(RecomputePass, DoesNothingUnlessAsked) {
  const Graph graph = TrainingGraph("wrn-10-1", 4);
  PlanDraft draft = toy::MakeDraft(graph, BuiltinOps());
  const auto what = MakeRecomputePass()->Run(draft, BuiltinOps(), {});
  ASSERT_TRUE(what.ok());
  EXPECT_EQ(*what, "");
  EXPECT_EQ(draft.graph, graph);
}

TEST(RecomputePass, LeavesEvaluationAlone) {
  const Graph graph = EvaluationGraph("wrn-10-1", 4);
  PlanDraft draft = toy::MakeDraft(graph, BuiltinOps());
  EXPECT_EQ(MakeRecomputePass()->Run(draft, BuiltinOps(), Asking("optimal")).value(), "");
  EXPECT_EQ(draft.graph, graph);
}

TEST(RecomputePass, IsNoTechniqueThatEveryPlanHas) {
  EXPECT_TRUE(MakeRecomputePass()->Info().on_demand);
  for (const PassInfo& pass : OptionalPasses()) EXPECT_NE(pass.name, "recompute");
}

TEST(RecomputePass, OnlyOptimalComparesArenas) {
  for (const char* text : {"none", "cheap", "blocks", "sqrt"}) {
    EXPECT_FALSE(MakeRecomputePass()->ComparesArenas(Asking(text))) << text;
  }
  EXPECT_TRUE(MakeRecomputePass()->ComparesArenas(Asking("optimal")));
  EXPECT_TRUE(MakeRecomputePass()->ComparesArenas(Asking("optimal:64MB")));
}

TEST(RecomputePass, PlansShrinkAndSayWhatItCosts) {
  const Graph graph = TrainingGraph("wrn-16-1", 4);
  const Plan plain = PlanGraph(graph);
  for (const char* text : {"cheap", "blocks", "blocks:2", "sqrt", "optimal"}) {
    const Plan plan = PlanGraph(graph, Asking(text));
    EXPECT_LT(plan.arena_bytes, plain.arena_bytes) << text;
    const auto decision = std::find_if(plan.decisions.begin(), plan.decisions.end(),
                                       [](const Decision& d) { return d.pass == "recompute"; });
    ASSERT_NE(decision, plan.decisions.end()) << text;
    EXPECT_EQ(decision->what.rfind(std::string(text) + ": ", 0), 0U) << decision->what;
    EXPECT_GT(decision->saved_bytes, 0) << text;
    EXPECT_GT(decision->added_flops, 0) << text;
    const GraphCost cost = CostOf(plan.graph, BuiltinOps());
    EXPECT_EQ(cost.recompute_flops, decision->added_flops) << text;
    EXPECT_EQ(cost.step_flops, CostOf(graph, BuiltinOps()).step_flops + decision->added_flops);
    EXPECT_EQ(cost.forward_flops, CostOf(graph, BuiltinOps()).forward_flops) << text;
  }
}

TEST(RecomputePass, LimitsAreKeptOrRefused) {
  const Graph graph = TrainingGraph("wrn-10-1", 8);
  const size_t smallest = PlanGraph(graph, Asking("optimal")).arena_bytes;
  const size_t plain = PlanGraph(graph).arena_bytes;
  size_t before = SIZE_MAX;
  for (size_t limit = plain; limit >= smallest; limit = smallest + (limit - smallest) / 3) {
    PlanOptions options = Asking("optimal");
    options.recompute.limit_bytes = limit;
    const Plan plan = PlanGraph(graph, options);
    EXPECT_LE(plan.arena_bytes, limit);
    EXPECT_LE(plan.arena_bytes, before);
    before = plan.arena_bytes;
    if (limit == smallest) break;
  }
  PlanOptions options = Asking("optimal");
  options.recompute.limit_bytes = smallest - 1;
  const auto refused = PlanProgram({{"toy", graph}}, BuiltinOps(), {}, options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kDoesNotFit);
  EXPECT_NE(refused.error().message.find(fmt::format("{} bytes", smallest)), std::string::npos)
      << refused.error().message;
}

// Any graph: values read many times or never, several outputs, carries.
TEST(RecomputePass, RandomGraphsArePlannedAndVerified) {
  for (uint32_t seed = 0; seed < 150; ++seed) {
    std::mt19937 random(seed);
    const Graph graph = toy::RandomToyGraph(random, 6 + seed % 20).Take();
    const size_t plain = toy::PlanToy(graph, toy::RandomGraphOps()).arena_bytes;
    for (const char* text : {"cheap", "blocks", "sqrt", "optimal"}) {
      const Plan plan = toy::PlanToy(graph, toy::RandomGraphOps(), Asking(text));
      if (std::string(text) == "optimal") {
        EXPECT_LE(plan.arena_bytes, plain) << "seed " << seed;
      }
    }
  }
}

TEST(RecomputePass, RandomNetworksArePlannedAndVerified) {
  for (uint32_t seed = 0; seed < 16; ++seed) {
    std::mt19937 random(seed);
    const Graph graph = toy::RandomNetwork(random, 4 + seed % 12).Take(true);
    const size_t plain = toy::PlanToy(graph, BuiltinOps()).arena_bytes;
    for (const char* text : {"cheap", "blocks", "blocks:2", "sqrt", "optimal"}) {
      const Plan plan = toy::PlanToy(graph, BuiltinOps(), Asking(text));
      if (std::string(text) == "optimal") {
        EXPECT_LE(plan.arena_bytes, plain) << "seed " << seed;
      }
    }
  }
}

TEST(RecomputePass, WorksWithEveryOtherPassLeftOut) {
  const Graph graph = TrainingGraph("wrn-10-1", 4);
  for (const PassInfo& pass : OptionalPasses()) {
    PlanOptions options = Asking("optimal");
    options.skipped_passes = {std::string(pass.name)};
    PlanOptions without = options;
    without.recompute = {};
    EXPECT_LE(PlanGraph(graph, options).arena_bytes, PlanGraph(graph, without).arena_bytes)
        << pass.name;
  }
}

}  // namespace
}  // namespace thimble
