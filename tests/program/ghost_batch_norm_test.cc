#include "thimble/program/ghost_batch_norm/ghost_batch_norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "thimble/graph/verify_graph.h"
#include "thimble/model/network_builder.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

Graph MakeNormGraph(Mode mode) {
  NetworkBuilder net(BuiltinOps(), mode);
  net.BatchNorm("bn", net.Input("x", {5, 8, 8, 3}, DType::kF32));
  return std::move(net).Finish().value().graph;
}

TEST(GroupBatchNorms, NormsKnowTheirGroupAndTheBatch) {
  Graph graph = MakeNormGraph(Mode::kTrain);
  ASSERT_EQ(graph.nodes.size(), 2U);
  EXPECT_EQ(graph.value(graph.nodes[0].outputs[1]).shape, (Shape{3}));
  ASSERT_TRUE(GroupBatchNorms(graph, BuiltinOps(), 2).ok());
  EXPECT_EQ(graph.nodes[0].attributes.Int("group"), 2);
  EXPECT_EQ(graph.value(graph.nodes[0].outputs[1]).shape, (Shape{3, 3}));
  const Node& update = graph.nodes[1];
  EXPECT_EQ(update.attributes.Int("samples"), 5);
  EXPECT_EQ(update.attributes.Int("count"), 5 * 8 * 8);
  EXPECT_EQ(graph.value(update.outputs[0]).shape, (Shape{3}));
  EXPECT_TRUE(VerifyGraph(graph, BuiltinOps()).ok());
}

TEST(GroupBatchNorms, ANegativeGroupIsRefused) {
  Graph graph = MakeNormGraph(Mode::kTrain);
  const auto grouped = GroupBatchNorms(graph, BuiltinOps(), -1);
  ASSERT_FALSE(grouped.ok());
  EXPECT_THAT(grouped.error().message, testing::HasSubstr("group is -1"));
}

TEST(GhostBatchNorm, SaysWhatItDid) {
  ForwardGraph forward{MakeNormGraph(Mode::kTrain), 5, true};
  EXPECT_EQ(*MakeGhostBatchNorm()->ChangeForward("2", BuiltinOps(), forward),
            "batch-norm statistics per 2 samples");
}

TEST(GhostBatchNorm, LeavesOtherGraphsAlone) {
  ForwardGraph evaluation{MakeNormGraph(Mode::kEvaluate), 5, false};
  const Graph before = evaluation.graph;
  EXPECT_EQ(*MakeGhostBatchNorm()->ChangeForward("2", BuiltinOps(), evaluation), "");
  EXPECT_EQ(evaluation.graph, before);
  ForwardGraph training{MakeNormGraph(Mode::kTrain), 5, true};
  EXPECT_EQ(*MakeGhostBatchNorm()->ChangeForward("0", BuiltinOps(), training), "");
}

}  // namespace
}  // namespace thimble
