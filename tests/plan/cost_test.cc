#include "thimble/plan/cost.h"

#include <gtest/gtest.h>

#include "tests/support/model_graphs.h"
#include "tests/support/toy_ops.h"
#include "thimble/graph/append_node.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

TEST(CostTest, CountsFlopsAndTrafficOfANode) {
  const OpRegistry ops = ToyOps();
  Graph graph;
  const ValueId x = AddInput(graph, "x", {3, 5});
  AppendToy(graph, ops, "multiply", {x, x});
  const NodeCost cost = CostOf(graph, ops, graph.nodes[0]);
  EXPECT_EQ(cost.flops, 15);
  EXPECT_EQ(cost.bytes, 3 * 15 * 4);  // each input as often as it is read, and the output
}

TEST(CostTest, TypesCountWithTheirSize) {
  const OpRegistry& ops = BuiltinOps();
  Graph graph;
  const ValueId x = graph.AddValue({"x", {1, 2, 2, 3}, DType::kU8, Role::kInput, {}, {}});
  const auto y = AppendNode(graph, ops,
                            {.op = "image_normalize",
                             .inputs = {x},
                             .attributes = {{"mean", std::vector<double>{0, 0, 0}},
                                            {"std", std::vector<double>{1, 1, 1}}}});
  ASSERT_TRUE(y.ok());
  EXPECT_EQ(CostOf(graph, ops, graph.nodes[0]).bytes, 12 + 4 * 12);
}

TEST(CostTest, SumsPhases) {
  const OpRegistry ops = ToyOps();
  Graph graph;
  const ValueId x = AddInput(graph, "x", {10});
  const ValueId y = AppendToy(graph, ops, "scale", {x});
  AppendToy(graph, ops, "scale", {y});
  AppendToy(graph, ops, "scale", {y});
  graph.nodes[1].phase = Phase::kBackward;
  graph.nodes[2].phase = Phase::kUpdate;
  const GraphCost cost = CostOf(graph, ops);
  EXPECT_EQ(cost.forward_flops, 10);
  EXPECT_EQ(cost.step_flops, 30);
  // An activation that is made in backward is a rebuilt one.
  EXPECT_EQ(cost.recompute_flops, 10);
  graph.values[graph.nodes[1].outputs[0].index()].role = Role::kGradient;
  EXPECT_EQ(CostOf(graph, ops).recompute_flops, 0);
}

TEST(CostTest, EmptyGraphCostsNothing) {
  const GraphCost cost = CostOf(Graph{}, ToyOps());
  EXPECT_EQ(cost.forward_flops, 0);
  EXPECT_EQ(cost.step_flops, 0);
}

TEST(CostTest, BackwardOfANetworkCostsAboutTwiceItsForward) {
  const GraphCost cost = CostOf(TrainingGraph("wrn-16-2", 10), BuiltinOps());
  const double ratio =
      static_cast<double>(cost.step_flops) / static_cast<double>(cost.forward_flops);
  EXPECT_GT(ratio, 2.8);
  EXPECT_LT(ratio, 3.1);
  EXPECT_EQ(CostOf(EvaluationGraph("wrn-16-2", 20), BuiltinOps()).step_flops,
            2 * CostOf(EvaluationGraph("wrn-16-2", 10), BuiltinOps()).step_flops);
}

}  // namespace
}  // namespace thimble
