// State that changes several times in a step, in the whole planner: after all passes every node
// still reads the versions that it reads in the graph.
#include <gtest/gtest.h>

#include "tests/plan/random_versions.h"
#include "tests/plan/toy_draft.h"
#include "tests/support/model_graphs.h"
#include "tests/support/update_in_backward.h"
#include "thimble/graph/verify_graph.h"
#include "thimble/plan/order/find_orders.h"
#include "thimble/plan/order/late_order.h"
#include "thimble/plan/pipeline.h"
#include "thimble/plan/recompute/apply_schedule.h"
#include "thimble/plan/recompute/candidates.h"
#include "thimble/plan/recompute/optimal.h"
#include "thimble/plan/recompute/verify_rebuilt.h"

namespace thimble::toy {
namespace {

using Symbols = std::map<std::string, std::string>;

const OpRegistry& Ops() { return RandomGraphOps(); }

PlanOptions Asking(const std::string& recompute) {
  PlanOptions options;
  options.recompute = ParseRecompute(recompute).value();
  return options;
}

class VersionsTest : public testing::Test {
 protected:
  // Calls `visit` with random graphs and the symbols of their values.
  template <class Visit>
  static void ForEachGraph(uint32_t count, size_t most_nodes, const Visit& visit) {
    for (uint32_t seed = 0; seed < count && !HasFailure(); ++seed) {
      SCOPED_TRACE(seed);
      std::mt19937 random(seed);
      const Graph graph = RandomVersionedGraph(random, 2 + seed % most_nodes).Take();
      const auto verified = VerifyGraph(graph, Ops());
      ASSERT_TRUE(verified.ok()) << verified.error().message;
      const PlanDraft draft = MakeDraft(graph, Ops());
      visit(draft, ComputeSymbols(graph, draft.order));
    }
  }
};

TEST_F(VersionsTest, EveryOrderReadsTheSameVersions) {
  size_t orders = 0;
  ForEachGraph(400, 30, [&](const PlanDraft& draft, const Symbols& expected) {
    std::vector<FoundOrder> found = FindOrders(draft.graph);
    EXPECT_EQ(found.size(), 3U);
    found.push_back({MakeLateOrder(draft.graph, draft.order), "late"});
    for (const FoundOrder& order : found) {
      ASSERT_EQ(order.order.size(), draft.order.size()) << order.how;
      EXPECT_EQ(ComputeSymbols(draft.graph, order.order), expected) << order.how;
      orders += order.order != draft.order ? 1 : 0;
    }
  });
  EXPECT_GT(orders, 400U);
}

TEST_F(VersionsTest, EveryPlanReadsTheSameVersions) {
  size_t rebuilt = 0;
  ForEachGraph(50, 24, [&](const PlanDraft& draft, const Symbols& expected) {
    for (const char* text : {"none", "cheap", "blocks", "blocks:2", "sqrt", "optimal"}) {
      for (const std::set<std::string>& skipped :
           {std::set<std::string>{}, {"order"}, {"in-place"}, {"order", "in-place", "placement"}}) {
        PlanOptions options = Asking(text);
        options.skipped_passes = skipped;
        const Plan plan = PlanToy(draft.graph, Ops(), options);
        const Symbols symbols = ComputeSymbols(plan.graph, OrderOf(plan));
        EXPECT_EQ(OnlyNamesOf(expected, symbols), expected) << text << "\n" << ToString(plan.graph);
        rebuilt += plan.graph.nodes.size() - draft.graph.nodes.size();
      }
    }
  });
  EXPECT_GT(rebuilt, 500U);
}

// All schedules of the class that OptimalSchedules searches, at any cost.
std::vector<RebuildSchedule> AllSchedules(const Stretches& stretches, const Chain& chain, size_t s,
                                          size_t t) {
  const auto join = [](RebuildSchedule steps, const RebuildSchedule& more) {
    steps.insert(steps.end(), more.begin(), more.end());
    return steps;
  };
  const bool first_pass = t + 1 == chain.num_stages;
  if (s == t && !first_pass) return {stretches.BackwardSteps(s, false)};
  std::vector<RebuildSchedule> all;
  const RebuildSchedule saving = stretches.ForwardSavingSteps(s, t);
  const RebuildSchedule backward = stretches.BackwardSteps(s, true);
  if (s == t) return {join(saving, backward)};
  for (const RebuildSchedule& rest : AllSchedules(stretches, chain, s + 1, t)) {
    all.push_back(join(join(saving, rest), backward));
  }
  for (size_t i = s + 1; i <= t; ++i) {
    const RebuildSchedule forward = stretches.ForwardSteps(s, i, t);
    const auto lefts = AllSchedules(stretches, chain, s, i - 1);
    for (const RebuildSchedule& right : AllSchedules(stretches, chain, i, t)) {
      for (const RebuildSchedule& left : lefts) all.push_back(join(join(forward, right), left));
    }
  }
  return all;
}

// Also all schedules that keep some of the values and rebuild the others.
std::vector<RebuildSchedule> AllThatKeep(const Graph& graph, const Chain& chain) {
  std::vector<size_t> droppable;
  for (size_t v = 0; v < chain.values.size(); ++v) {
    if (chain.values[v].kind == ChainValue::Kind::kForward) droppable.push_back(v);
  }
  std::vector<RebuildSchedule> all;
  const size_t count = size_t{1} << std::min<size_t>(droppable.size(), 8);
  for (size_t subset = 0; subset < count; ++subset) {
    std::vector<bool> kept(chain.values.size(), false);
    for (size_t i = 0; i < droppable.size(); ++i) kept[droppable[i]] = (subset >> i) % 2 != 0;
    all.push_back(ScheduleKeeping(graph, chain, kept));
  }
  return all;
}

TEST_F(VersionsTest, EveryScheduleRebuildsWhatWasThere) {
  size_t with_reruns = 0;
  ForEachGraph(250, 12, [&](const PlanDraft& draft, const Symbols& expected) {
    const Chain chain = MakeChain(draft, Ops(), {}, 5).value();
    const Stretches stretches(draft.graph, Ops(), chain);
    std::vector<RebuildSchedule> schedules =
        AllSchedules(stretches, chain, 0, chain.num_stages - 1);
    for (RebuildSchedule& schedule : AllThatKeep(draft.graph, chain)) {
      schedules.push_back(std::move(schedule));
    }
    for (const RebuildSchedule& schedule : schedules) {
      const PlanDraft applied = ApplySchedule(draft, chain, schedule);
      const Symbols symbols = ComputeSymbols(applied.graph, applied.order);
      ASSERT_EQ(OnlyNamesOf(expected, symbols), expected) << ToString(applied.graph);
      EXPECT_TRUE(VerifyGraph(applied.graph, Ops()).ok());
      EXPECT_TRUE(VerifyRebuilt(draft.graph, applied.graph, Ops()).ok());
      with_reruns += RerunWork(chain, schedule) > 0 ? 1 : 0;
    }
  });
  EXPECT_GT(with_reruns, 10000U);
}

// A plain chain of layers, each with a weight that backward updates after it was read there:
//   y_k = sum2(y_k-1, w_k);  dw_k = mix(dy_k, y_k-1);  dy_k-1 = sum2(dy_k, w_k);  update w_k
Graph LayersWithUpdates(size_t num_layers) {
  Graph graph;
  std::vector<ValueId> y = {AddInput(graph, "x", Role::kInput, {16})};
  std::vector<ValueId> w;
  std::vector<ValueId> m;
  for (size_t k = 0; k < num_layers; ++k) {
    w.push_back(AddInput(graph, fmt::format("w{}", k), Role::kParameter, {16}));
    m.push_back(AddInput(graph, fmt::format("m{}", k), Role::kState, {16}));
    y.push_back(Append(graph, Ops(), "sum2", {y[k], w[k]}, {fmt::format("y{}", k)})[0]);
  }
  ValueId dy = Append(graph, Ops(), "copy", {y.back()}, {"d"}, Phase::kBackward)[0];
  for (size_t k = num_layers; k-- > 0;) {
    const ValueId dw =
        Append(graph, Ops(), "mix", {dy, y[k]}, {fmt::format("dw{}", k)}, Phase::kBackward)[0];
    dy = Append(graph, Ops(), "sum2", {dy, w[k]}, {fmt::format("dy{}", k)}, Phase::kBackward)[0];
    AppendVersions(graph, Ops(), w[k], m[k], dw, Phase::kBackward);
  }
  graph.outputs = {dy};
  return graph;
}

TEST_F(VersionsTest, LayersThatAreUpdatedOneAfterTheOtherAreRebuiltAsBefore) {
  const PlanDraft draft = MakeDraft(LayersWithUpdates(6), Ops());
  const Chain chain = MakeChain(draft, Ops(), {}).value();
  for (size_t k = 0; k < 6; ++k) {
    const ValueId y = draft.graph.Find(fmt::format("y{}", k));
    EXPECT_EQ(chain.values[y.index()].kind, ChainValue::Kind::kForward) << k;
  }
}

TEST_F(VersionsTest, WhatIsNeededAfterAnUpdateIsKept) {
  // The gradient of the first layer reads the last layer's output, when all weights but one are
  // new.
  Graph graph = LayersWithUpdates(4);
  graph.outputs =
      Append(graph, Ops(), "mix", {graph.outputs[0], graph.Find("y2")}, {"late"}, Phase::kBackward);
  const Chain chain = MakeChain(MakeDraft(graph, Ops()), Ops(), {}).value();
  const auto kind = [&](const char* name) { return chain.values[graph.Find(name).index()].kind; };
  EXPECT_EQ(kind("y2"), ChainValue::Kind::kFixed);
  EXPECT_EQ(kind("y3"), ChainValue::Kind::kForward);
  EXPECT_EQ(kind("y1"), ChainValue::Kind::kForward);
  EXPECT_EQ(kind("y0"), ChainValue::Kind::kForward);
}

TEST_F(VersionsTest, WhatForwardOverwritesIsNeverReadAgain) {
  Graph graph;
  const ValueId x = AddInput(graph, "x", Role::kInput, {16});
  const ValueId w = AddInput(graph, "w", Role::kParameter, {16});
  const ValueId m = AddInput(graph, "m", Role::kState, {16});
  const ValueId a = Append(graph, Ops(), "sum2", {x, w}, {"a"})[0];
  const auto [next, state] = AppendVersions(graph, Ops(), w, m, x, Phase::kForward);
  const ValueId b = Append(graph, Ops(), "sum2", {x, next}, {"b"})[0];
  graph.outputs = Append(graph, Ops(), "mix", {a, b}, {"d"}, Phase::kBackward);
  const Chain chain = MakeChain(MakeDraft(graph, Ops()), Ops(), {}).value();
  EXPECT_EQ(chain.values[a.index()].kind, ChainValue::Kind::kFixed);
  EXPECT_EQ(chain.values[b.index()].kind, ChainValue::Kind::kForward);
}

// An update comes right after the last reader of the weight, so that gradients of weights do not
// accumulate.
TEST_F(VersionsTest, LateOrderUpdatesAWeightOnceItIsReadForTheLastTime) {
  const Graph graph = UpdateInBackward(TrainingGraph("wrn-10-1", 2));
  const PlanDraft draft = MakeDraft(graph, BuiltinOps());
  std::vector<std::string> names;
  for (NodeId id : MakeLateOrder(graph, draft.order)) {
    names.push_back(graph.node(id).op + " " + graph.node(id).layer);
  }
  const auto at = std::find(names.begin(), names.end(), "conv2d_grad_input block1.layer.0.conv2");
  ASSERT_NE(at, names.end());
  EXPECT_EQ(*(at - 1), "conv2d_grad_weight block1.layer.0.conv2");
  EXPECT_EQ(*(at + 1), "sgd_update block1.layer.0.conv2");
}

TEST_F(VersionsTest, UpdatesInBackwardNeedNoMoreThanOnesAfterIt) {
  const Graph after = TrainingGraph("wrn-10-1", 4);
  const Graph inside = UpdateInBackward(after);
  EXPECT_EQ(after.nodes.size(), inside.nodes.size());
  for (const char* text : {"none", "cheap", "blocks", "sqrt", "optimal"}) {
    EXPECT_LE(PlanGraph(inside, Asking(text)).arena_bytes,
              PlanGraph(after, Asking(text)).arena_bytes)
        << text;
  }
}

}  // namespace
}  // namespace thimble::toy
