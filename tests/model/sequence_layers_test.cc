#include "thimble/model/sequence_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

using testing::HasSubstr;

class SequenceLayers : public testing::Test {
 protected:
  ValueId Tokens() { return net_.Input("tokens", {2, 5}, DType::kI32); }
  ValueId Lengths() { return net_.Input("lengths", {2}, DType::kI32); }
  ValueId Sequence(int64_t channels) { return net_.Input("x", {2, 5, channels}, DType::kF32); }
  // Of the node that computes this value.
  const Node& NodeOf(const Graph& graph, ValueId value) {
    return graph.node(graph.value(value).producer);
  }
  Graph Finish() {
    auto built = std::move(net_).Finish();
    EXPECT_TRUE(built.ok()) << built.error().message;
    return std::move(built).value().graph;
  }

  NetworkBuilder net_{BuiltinOps(), Mode::kTrain};
};

TEST_F(SequenceLayers, EmbeddingScalesRowsAndLeavesPaddingOut) {
  const ValueId y = Embedding(net_, "words", Tokens(), 30, 16);
  EXPECT_EQ(net_.shape(y), (Shape{2, 5, 16}));
  const Graph graph = Finish();
  EXPECT_EQ(NodeOf(graph, y).attributes.Float("scale"), 4);
  EXPECT_EQ(NodeOf(graph, y).attributes.Int("padding"), kPaddingToken);
  EXPECT_TRUE(graph.Find("words.weight").valid());
}

TEST_F(SequenceLayers, LinearKeepsPositions) {
  const ValueId y = PositionwiseLinear(net_, "fc", Sequence(8), 3);
  EXPECT_EQ(net_.shape(y), (Shape{2, 5, 3}));
  EXPECT_EQ(NodeOf(Finish(), y).inputs.size(), 3U);  // with a bias
}

TEST_F(SequenceLayers, TapsHaveNoBiasAndTheirOwnDraws) {
  const ValueId x = Sequence(8);
  const ValueId lengths = Lengths();
  const DynamicConvSpec spec{.heads = 2, .kernel = 3, .dropout = 0.1};
  const ValueId first = DynamicConv(net_, "first", x, lengths, spec);
  const ValueId second = DynamicConv(net_, "second", first, lengths, spec);
  EXPECT_EQ(net_.shape(second), (Shape{2, 5, 8}));
  const Graph graph = Finish();
  EXPECT_EQ(graph.value(graph.Find("first.weight_linear.weight")).shape, (Shape{6, 8}));
  EXPECT_FALSE(graph.Find("first.weight_linear.bias").valid());
  EXPECT_NE(NodeOf(graph, first).attributes.Int("stream"),
            NodeOf(graph, second).attributes.Int("stream"));
}

TEST_F(SequenceLayers, NothingIsDrawnWithoutDropout) {
  Attention(net_, "attention", Sequence(8), net_.Input("source", {2, 7, 8}, DType::kF32), Lengths(),
            {.heads = 2, .dropout = 0});
  EXPECT_FALSE(Finish().Find(kSamplesInput).valid());
}

TEST_F(SequenceLayers, SaysWhichLayerGotTheWrongShape) {
  PositionwiseLinear(net_, "fc", net_.Input("image", {2, 4, 4, 3}, DType::kF32), 3);
  const auto built = std::move(net_).Finish();
  ASSERT_FALSE(built.ok());
  EXPECT_THAT(built.error().message,
              HasSubstr("layer 'fc': expected an input (B, T, C), got (2, 4, 4, 3)"));
}

}  // namespace
}  // namespace thimble
