#include "thimble/plan/order/late_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/plan/random_graph.h"
#include "tests/plan/toy_draft.h"
#include "tests/support/model_graphs.h"

namespace thimble {
namespace {

std::vector<std::string> BackwardOf(const Graph& graph) {
  const PlanDraft draft = toy::MakeDraft(graph, BuiltinOps());
  std::vector<std::string> names;
  for (NodeId id : MakeLateOrder(graph, draft.order)) {
    const Node& node = graph.node(id);
    if (node.phase == Phase::kBackward) names.push_back(node.op + " " + node.layer);
  }
  return names;
}

void ExpectRunnable(const Graph& graph, const std::vector<NodeId>& order, uint32_t seed) {
  ASSERT_EQ(order.size(), graph.nodes.size()) << "seed " << seed;
  std::vector<bool> made(graph.values.size());
  for (size_t v = 0; v < made.size(); ++v) made[v] = !graph.values[v].producer.valid();
  Phase phase = Phase::kForward;
  for (NodeId id : order) {
    EXPECT_GE(graph.node(id).phase, phase) << "seed " << seed;
    phase = graph.node(id).phase;
    for (ValueId input : graph.node(id).inputs) EXPECT_TRUE(made[input.index()]) << "seed " << seed;
    for (ValueId output : graph.node(id).outputs) {
      EXPECT_FALSE(made[output.index()]) << "seed " << seed;
      made[output.index()] = true;
    }
  }
}

TEST(LateOrder, RandomGraphsCanRun) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const Graph toys = toy::RandomToyGraph(random, 5 + seed % 25).Take();
    ExpectRunnable(toys, MakeLateOrder(toys, toy::MakeDraft(toys, toy::RandomGraphOps()).order),
                   seed);
    const Graph network = toy::RandomNetwork(random, 3 + seed % 8).Take(true);
    ExpectRunnable(network, MakeLateOrder(network, toy::MakeDraft(network, BuiltinOps()).order),
                   seed);
  }
}

TEST(LateOrder, AShortcutIsFollowedAfterTheOtherBranch) {
  const auto names = BackwardOf(TrainingGraph("wrn-10-1", 2));
  const auto at = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) - names.begin();
  };
  const std::string block = "block2.layer.0.";
  EXPECT_LT(at("batch_norm_grad " + block + "bn2"),
            at("conv2d_grad_input " + block + "convShortcut"));
  // Both weight gradients that read the norm's output come before it is overwritten.
  const auto inputs = std::min(at("conv2d_grad_input " + block + "conv1"),
                               at("conv2d_grad_input " + block + "convShortcut"));
  EXPECT_LT(at("conv2d_grad_weight " + block + "conv1"), inputs);
  EXPECT_LT(at("conv2d_grad_weight " + block + "convShortcut"), inputs);
}

TEST(LateOrder, WeightGradientsComeRightBeforeTheirLayersOthers) {
  const auto names = BackwardOf(TrainingGraph("wrn-10-1", 2));
  const auto weight =
      std::find(names.begin(), names.end(), "conv2d_grad_weight block1.layer.0.conv2");
  ASSERT_NE(weight, names.end());
  EXPECT_EQ(*(weight + 1), "conv2d_grad_input block1.layer.0.conv2");
}

}  // namespace
}  // namespace thimble
