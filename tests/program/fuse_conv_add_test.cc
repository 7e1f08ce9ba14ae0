#include "thimble/program/fuse_conv_add/fuse_conv_add.h"

#include <gtest/gtest.h>

#include "tests/support/model_graphs.h"
#include "tests/support/residual_training.h"
#include "thimble/graph/verify_graph.h"
#include "thimble/model/network_builder.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

class FuseConvAddTest : public testing::Test {
 protected:
  ValueId Input() { return net_.Input("x", {2, 4, 4, 3}, DType::kF32); }
  ValueId Conv(const std::string& name, ValueId x) {
    return net_.Conv(name, x, {.out_channels = 3, .padding = 1});
  }
  Graph Fuse(const std::vector<std::string>& outputs = {}) {
    auto built = std::move(net_).Finish();
    EXPECT_TRUE(built.ok());
    Graph graph = std::move(built->graph);
    for (const std::string& name : outputs) graph.outputs.push_back(graph.Find(name));
    FuseConvAdd(graph);
    const auto verified = VerifyGraph(graph, BuiltinOps());
    EXPECT_TRUE(verified.ok()) << verified.error().message;
    return graph;
  }

  NetworkBuilder net_{BuiltinOps(), Mode::kTrain};
};

TEST_F(FuseConvAddTest, OneNodeWritesWhatTheAddWrote) {
  const ValueId x = Input();
  const ValueId inner = net_.Add(Conv("first", x), x);
  net_.Add(inner, Conv("second", inner));
  const Graph graph = Fuse();
  ASSERT_EQ(graph.nodes.size(), 2U);
  const char* layers[] = {"first", "second"};
  for (size_t i = 0; i < 2; ++i) {
    const Node& node = graph.nodes[i];
    EXPECT_EQ(node.op, "conv2d_add");
    EXPECT_EQ(node.layer, layers[i]);
    EXPECT_EQ(node.attributes.Int("padding"), 1);
    ASSERT_EQ(node.inputs.size(), 3U);
    // Here the added value is the convolution's input.
    EXPECT_EQ(node.inputs[2], node.inputs[0]);
    EXPECT_FALSE(graph.Find(std::string(layers[i]) + ".y").valid());
  }
  EXPECT_EQ(graph.nodes[1].inputs[0], graph.nodes[0].outputs[0]);
}

TEST_F(FuseConvAddTest, OfTwoConvolutionsTheFirstMovesBehindTheSecond) {
  const ValueId x = Input();
  const ValueId a = Conv("a", x);
  const ValueId b = Conv("b", x);
  net_.Add(a, b);
  const Graph graph = Fuse();
  ASSERT_EQ(graph.nodes.size(), 2U);
  EXPECT_EQ(graph.nodes[0].layer, "b");
  EXPECT_EQ(graph.nodes[0].op, "conv2d");
  EXPECT_EQ(graph.nodes[1].layer, "a");
  EXPECT_EQ(graph.nodes[1].op, "conv2d_add");
}

TEST_F(FuseConvAddTest, KeepsAConvolutionThatOthersRead) {
  const ValueId x = Input();
  const ValueId y = Conv("conv", x);
  net_.Relu(y);
  net_.Add(y, x);
  const Graph graph = Fuse();
  EXPECT_EQ(CountOps(graph, "add"), 1U);
  EXPECT_EQ(CountOps(graph, "conv2d_add"), 0U);
}

TEST_F(FuseConvAddTest, KeepsAConvolutionThatIsAnOutput) {
  const ValueId x = Input();
  net_.Add(Conv("conv", x), x);
  const Graph graph = Fuse({"conv.y"});
  EXPECT_EQ(CountOps(graph, "add"), 1U);
}

TEST_F(FuseConvAddTest, EveryBlockOfAWideResNetHasOne) {
  const Graph graph = TrainingGraph("wrn-10-1", 2);
  EXPECT_EQ(CountOps(graph, "conv2d_add"), 3U);
}

TEST(FuseConvAddTrainingTest, TrainsToTheSameBitsOnEveryTarget) {
  const auto built = MakeResidualNetwork();
  Graph fused = built.graph;
  FuseConvAdd(fused);
  ASSERT_EQ(CountOps(fused, "conv2d_add"), 1U);
  ExpectSameTraining(fused, built);
}

}  // namespace
}  // namespace thimble
