#include "thimble/plan/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plan/random_graph.h"
#include "tests/plan/toy_draft.h"
#include "thimble/plan/verify_plan.h"

namespace thimble::toy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string ErrorOf(const Graph& graph, const PlanOptions& options = {},
                    const ResidentLayout& residents = {}) {
  const auto plan = MakePlan(graph, RandomGraphOps(), residents, options);
  EXPECT_FALSE(plan.ok());
  return plan.ok() ? "" : plan.error().message;
}

std::vector<std::string> DecisionsOf(const Plan& plan) {
  std::vector<std::string> passes;
  for (const Decision& decision : plan.decisions) passes.push_back(decision.pass);
  return passes;
}

TEST(PipelineTest, RunsThePassesInThisOrder) {
  std::vector<std::string> names;
  for (const auto& pass : PlanPasses()) {
    names.emplace_back(pass->Info().name);
    // Kernels are a technique only if some were requested, which then round differently.
    const bool asked_for = pass->Info().name == "kernels";
    EXPECT_EQ(pass->Info().exactness, asked_for ? Exactness::kEqual : Exactness::kSameBits)
        << pass->Info().name;
    EXPECT_FALSE(pass->Info().what.empty()) << names.back();
  }
  EXPECT_THAT(names, ElementsAre("kernels", "order", "recompute", "in-place", "placement", "rest"));
}

TEST(PipelineTest, ClassesHaveTheNamesOfTheReports) {
  EXPECT_EQ(Name(Exactness::kSameBits), "same-bits");
  EXPECT_EQ(Name(Exactness::kEqual), "equal");
  EXPECT_EQ(Name(Exactness::kLossy), "lossy");
}

TEST(PipelineTest, PlansATrainingGraphInMiniature) {
  const Plan plan = PlanToy(MakeTrainingGraph(RandomGraphOps()), RandomGraphOps());
  EXPECT_EQ(plan.steps.size(), 6U);
  EXPECT_EQ(plan.residents.end_bytes, 256U);         // w and m, 96 bytes each, aligned
  EXPECT_EQ(plan.lower_bound_bytes, 256U + 3 * 96);  // b, c and the loss
  EXPECT_EQ(plan.arena_bytes, 256U + 3 * 128);
  EXPECT_TRUE(VerifyPlan(RandomGraphOps(), plan).ok());
}

TEST(PipelineTest, RecordsWhatEachPassIsWorth) {
  const Graph graph = MakeTrainingGraph(RandomGraphOps());
  const Plan plan = PlanToy(graph, RandomGraphOps());
  EXPECT_THAT(DecisionsOf(plan), ElementsAre("order", "in-place", "placement"));
  PlanOptions apart;
  apart.skipped_passes = {"placement"};
  const Plan unplaced = PlanToy(graph, RandomGraphOps(), apart);
  // The last buffer ends before its padding; the arena is a whole number of lines.
  EXPECT_NEAR(static_cast<double>(plan.decisions[2].saved_bytes),
              static_cast<double>(unplaced.arena_bytes - plan.arena_bytes), kArenaAlignment);
  EXPECT_GT(plan.decisions[2].saved_bytes, 0);
}

TEST(PipelineTest, SkipsPassesByName) {
  const Graph graph = MakeTrainingGraph(RandomGraphOps());
  PlanOptions options;
  options.skipped_passes = {"order", "placement"};
  EXPECT_THAT(DecisionsOf(PlanToy(graph, RandomGraphOps(), options)), ElementsAre("in-place"));
  options.skipped_passes = {"order", "in-place", "placement"};
  const Plan plan = PlanToy(graph, RandomGraphOps(), options);
  EXPECT_TRUE(plan.decisions.empty());
  // Nothing shares anything: x, a, b, c, loss, dw and the scratch, each of two lines.
  EXPECT_EQ(plan.arena_bytes, 256U + 7 * 128);
}

TEST(PipelineTest, KnowsWhatIsDecidedWithoutNames) {
  PlanOptions options;
  for (Decides what : {Decides::kOrder, Decides::kStorage, Decides::kOffsets}) {
    EXPECT_TRUE(IsDecided(what, options));
  }
  for (const auto& pass : PlanPasses()) {
    PlanOptions without;
    without.skipped_passes = {std::string(pass->Info().name)};
    for (Decides what : {Decides::kOrder, Decides::kStorage, Decides::kOffsets}) {
      EXPECT_EQ(IsDecided(what, without), what != pass->Info().decides) << pass->Info().name;
    }
  }
}

TEST(PipelineTest, RefusesToSkipWhatIsNoPass) {
  const Graph graph = MakeTrainingGraph(RandomGraphOps());
  for (const char* name : {"kernels", "recompute", "", "Order", "in_place"}) {
    PlanOptions options;
    options.skipped_passes = {name};
    EXPECT_THAT(ErrorOf(graph, options), HasSubstr(fmt::format("no pass '{}' to leave out", name)));
  }
}

TEST(PipelineTest, RefusesABadGraph) {
  Graph graph = MakeTrainingGraph(RandomGraphOps());
  graph.values[1].name = "x";
  EXPECT_THAT(ErrorOf(graph), HasSubstr("two values are named 'x'"));
}

TEST(PipelineTest, SaysWhereNoKernelRuns) {
  OpRegistry ops;
  ops.Add(OpDef("wall").Input("x").Output("y").ShapeRule(SameAs(0)).Kernels(
      {MakeKernel<CopyKernel>("picky", DeviceKind::kCpu, &Declines)}));
  Graph graph;
  const ValueId x = AddInput(graph, "x", Role::kInput, {4});
  Append(graph, ops, "wall", {x}, {});
  const auto plan = MakePlan(graph, ops, {}, {});
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.error().message, HasSubstr("picky: never in the mood"));
}

TEST(PipelineTest, RefusesPhasesThatContradictTheDataFlow) {
  Graph graph = MakeTrainingGraph(RandomGraphOps());
  graph.nodes[0].phase = Phase::kBackward;  // a is read forward
  EXPECT_THAT(
      ErrorOf(graph, {}, PlanToy(MakeTrainingGraph(RandomGraphOps()), RandomGraphOps()).residents),
      HasSubstr("the plan is not valid"));
}

TEST(PipelineTest, PlansAGraphWithoutNodes) {
  Graph graph;
  graph.outputs = {AddInput(graph, "x", Role::kInput, {4})};
  const Plan plan = PlanToy(graph, RandomGraphOps());
  EXPECT_EQ(plan.arena_bytes, kArenaAlignment);
  EXPECT_EQ(plan.lower_bound_bytes, 16U);
  EXPECT_EQ(PlanToy(Graph{}, RandomGraphOps()).arena_bytes, 0U);
}

TEST(PipelineTest, PlansValuesWithoutElements) {
  Graph graph;
  const ValueId x = AddInput(graph, "x", Role::kInput, {0});
  graph.outputs = Append(graph, RandomGraphOps(), "mix",
                         {Append(graph, RandomGraphOps(), "copy", {x}, {})[0], x}, {});
  EXPECT_EQ(PlanToy(graph, RandomGraphOps()).arena_bytes, 0U);
}

TEST(PipelineTest, LimitsReachTheKernelsAndThePlan) {
  PlanOptions options;
  options.limits.threads = 3;
  const Plan plan = PlanToy(MakeTrainingGraph(RandomGraphOps()), RandomGraphOps(), options);
  EXPECT_EQ(plan.limits, options.limits);
  EXPECT_EQ(plan.placement(plan.steps[2].scratch).size_bytes, 3 * kScratchBytes);
}

}  // namespace
}  // namespace thimble::toy
