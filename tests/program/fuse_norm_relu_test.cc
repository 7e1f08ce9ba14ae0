#include "thimble/program/fuse_norm_relu/fuse_norm_relu.h"

#include <gtest/gtest.h>

#include "tests/support/model_graphs.h"
#include "tests/support/residual_training.h"
#include "thimble/graph/verify_graph.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

class FuseNormReluTest : public testing::TestWithParam<Mode> {
 protected:
  ValueId Input() { return net_.Input("x", {2, 4, 4, 3}, DType::kF32); }
  Graph Fuse(std::vector<std::string> outputs = {}) {
    auto built = std::move(net_).Finish();
    EXPECT_TRUE(built.ok());
    Graph graph = std::move(built->graph);
    for (const std::string& name : outputs) graph.outputs.push_back(graph.Find(name));
    FuseNormRelu(graph);
    const auto verified = VerifyGraph(graph, BuiltinOps());
    EXPECT_TRUE(verified.ok()) << verified.error().message;
    return graph;
  }
  const char* norm() const { return GetParam() == Mode::kTrain ? "batch_norm" : "batch_norm_eval"; }

  NetworkBuilder net_{BuiltinOps(), GetParam()};
};

TEST_P(FuseNormReluTest, OneNodeWritesWhatReluWrote) {
  const ValueId x = net_.Relu(net_.BatchNorm("bn", Input()));
  net_.Conv("conv", x, {.out_channels = 4});
  const Graph graph = Fuse({"conv.y"});
  EXPECT_EQ(CountOps(graph, "relu"), 0U);
  const Value& y = graph.value(graph.Find("bn.relu"));
  const Node& node = graph.node(y.producer);
  EXPECT_EQ(node.op, norm());
  EXPECT_EQ(node.layer, "bn");
  EXPECT_EQ(node.attributes.Int("relu"), 1);
  EXPECT_FALSE(graph.Find("bn.y").valid());
  EXPECT_EQ(graph.value(graph.outputs[0]).name, "conv.y");
  EXPECT_EQ(graph.carries.size(), GetParam() == Mode::kTrain ? 2U : 0U);
}

TEST_P(FuseNormReluTest, GroupNormsTakeTheirReluToo) {
  net_.Conv("conv", net_.Relu(net_.GroupNorm("gn", Input(), 3)), {.out_channels = 4});
  const Graph graph = Fuse({"conv.y"});
  EXPECT_EQ(CountOps(graph, "relu"), 0U);
  const Node& node = graph.node(graph.value(graph.Find("gn.relu")).producer);
  EXPECT_EQ(node.op, "group_norm");
  EXPECT_EQ(node.attributes.Int("relu"), 1);
}

TEST_P(FuseNormReluTest, KeepsANormThatOthersRead) {
  const ValueId x = net_.BatchNorm("bn", Input());
  net_.Add(net_.Relu(x), x);
  const Graph graph = Fuse();
  EXPECT_EQ(CountOps(graph, "relu"), 1U);
  EXPECT_EQ(graph.node(graph.value(graph.Find("bn.y")).producer).attributes.Int("relu"), 0);
}

TEST_P(FuseNormReluTest, KeepsANormThatTheCallerReads) {
  net_.Relu(net_.BatchNorm("bn", Input()));
  EXPECT_EQ(CountOps(Fuse({"bn.y"}), "relu"), 1U);
}

TEST_P(FuseNormReluTest, KeepsOtherRelus) {
  net_.Relu(net_.Relu(net_.BatchNorm("bn", net_.Relu(Input()))));
  const Graph graph = Fuse();
  // The one before the norm, and the second one after it.
  EXPECT_EQ(CountOps(graph, "relu"), 2U);
  EXPECT_EQ(CountOps(graph, norm()), 1U);
}

TEST_P(FuseNormReluTest, LeavesOtherGraphsAlone) {
  net_.Conv("conv", net_.BatchNorm("bn", Input()), {.out_channels = 4});
  const Graph graph = Fuse();
  Graph again = graph;
  FuseNormRelu(again);
  EXPECT_EQ(again, graph);
}

INSTANTIATE_TEST_SUITE_P(Modes, FuseNormReluTest, testing::Values(Mode::kTrain, Mode::kEvaluate),
                         [](const testing::TestParamInfo<Mode>& mode) {
                           return mode.param == Mode::kTrain ? "Train" : "Evaluate";
                         });

TEST(FuseNormReluStatisticsTest, KeepsAReluOfStatistics) {
  Graph graph;
  const ValueId x = graph.AddValue({"x", {8, 3}, DType::kF32, Role::kInput, {}, {}});
  const ValueId gamma = graph.AddValue({"gamma", {3}, DType::kF32, Role::kInput, {}, {}});
  const auto norm =
      AppendNode(graph, BuiltinOps(), {.op = "batch_norm", .inputs = {x, gamma, gamma}});
  ASSERT_TRUE(norm.ok());
  ASSERT_TRUE(AppendNode(graph, BuiltinOps(), {.op = "relu", .inputs = {(*norm)[1]}}).ok());
  FuseNormRelu(graph);
  EXPECT_EQ(CountOps(graph, "relu"), 1U);
}

TEST(BuildNetworkTest, FusesEveryNormOfAWideResNet) {
  for (Mode mode : {Mode::kTrain, Mode::kEvaluate}) {
    EXPECT_EQ(CountOps(MakeNetwork("wrn-16-2", 2, mode).graph, "relu"), 0U);
  }
}

TEST(FuseNormReluTrainingTest, TrainsToTheSameBitsOnEveryTarget) {
  const auto built = MakeResidualNetwork();
  Graph fused = built.graph;
  FuseNormRelu(fused);
  ASSERT_EQ(CountOps(built.graph, "relu"), 3U);
  ASSERT_EQ(CountOps(fused, "relu"), 0U);
  ExpectSameTraining(fused, built);
}

}  // namespace
}  // namespace thimble
