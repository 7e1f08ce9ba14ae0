#include "thimble/program/fold_norms/fold_norms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/model_graphs.h"
#include "thimble/graph/verify_graph.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/program/precision/storage_types.h"

namespace thimble {
namespace {

// The graph of a whole update, or of an evaluation, with numbers in these types.
class FoldNormsTest : public testing::Test {
 protected:
  static Graph Make(const std::string& model, const char* precision, Mode mode = Mode::kTrain,
                    const UpdateSpec& spec = {}) {
    std::vector<NamedGraph> graphs(1);
    graphs[0].graph = MakeNetwork(model, 2, mode, TinyImages()).graph;
    if (mode == Mode::kTrain) {
      Graph& graph = graphs[0].graph;
      EXPECT_TRUE(AppendUpdate(graph, BuiltinOps(), graph.Find("loss"), spec).ok());
    }
    StoreAs(ParsePrecision(precision).value(), BuiltinOps(), graphs);
    return std::move(graphs[0].graph);
  }
  static FoldedNorms Fold(Graph& graph) {
    const FoldedNorms folded = FoldNorms(graph);
    const auto verified = VerifyGraph(graph, BuiltinOps());
    EXPECT_TRUE(verified.ok()) << verified.error().message;
    return folded;
  }
  static int64_t Count(const Graph& graph, std::string_view op) {
    return std::ranges::count_if(graph.nodes, [&](const Node& node) { return node.op == op; });
  }
};

// wrn-10-1: three blocks with two norms; in two of them a shortcut convolution reads the first norm
// too. Before the classifier there is a norm that no convolution reads.
TEST_F(FoldNormsTest, ConvolutionsReadThroughNorms) {
  Graph graph = Make("wrn-10-1", "fp16");
  const Graph before = graph;
  const int64_t convolutions = Count(before, "conv2d") + Count(before, "conv2d_add");
  ASSERT_EQ(Count(before, "batch_norm"), 7);
  const FoldedNorms folded = Fold(graph);
  EXPECT_EQ(folded.norms, 6);
  EXPECT_EQ(Count(graph, "batch_norm"), 1);
  EXPECT_EQ(Count(graph, "batch_norm_statistics"), 6);
  EXPECT_EQ(Count(graph, "conv2d") + Count(graph, "conv2d_add"), 1);
  EXPECT_EQ(Count(graph, "norm_conv2d") + Count(graph, "norm_conv2d_add"), convolutions - 1);
  EXPECT_EQ(Count(graph, "norm_conv2d_grad_weight"), convolutions - 1);
}

// Where there is a shortcut convolution, two convolutions give the gradient of the first norm.
TEST_F(FoldNormsTest, GradientsGoThroughNorms) {
  Graph graph = Make("wrn-10-1", "fp16");
  const FoldedNorms folded = Fold(graph);
  EXPECT_EQ(folded.gradients, 6);
  EXPECT_EQ(Count(graph, "norm_conv2d_grad_input"), 4);
  EXPECT_EQ(Count(graph, "norm_conv2d_grad_input_pair"), 2);
  EXPECT_EQ(Count(graph, "conv2d_grad_input"), 0);
  EXPECT_EQ(Count(graph, "batch_norm_grad") + Count(graph, "batch_norm_grad_add"), 1);
}

// With an identity as the shortcut, what the sum gives is added to the gradient of the norm.
TEST_F(FoldNormsTest, SumsOfResidualsAreAdded) {
  Graph graph = Make("wrn-16-1", "fp16");
  Fold(graph);
  const auto adds = std::ranges::count_if(graph.nodes, [](const Node& node) {
    return node.op == "norm_conv2d_grad_input" && node.inputs.size() == 8;
  });
  EXPECT_EQ(adds, 4);
  EXPECT_EQ(Count(graph, "norm_conv2d_grad_input"), 10);
}

TEST_F(FoldNormsTest, UpdatesInBackwardReadThroughNormsToo) {
  Graph graph = Make("wrn-10-1", "fp16", Mode::kTrain, {.in_backward = true});
  Fold(graph);
  EXPECT_GT(Count(graph, "norm_conv2d_grad_weight") + Count(graph, "norm_conv2d_sgd_update"), 0);
  EXPECT_EQ(Count(graph, "batch_norm_statistics"), 6);
}

TEST_F(FoldNormsTest, EvaluationHasNoNormsBeforeConvolutions) {
  Graph graph = Make("wrn-10-1", "fp16", Mode::kEvaluate);
  const FoldedNorms folded = Fold(graph);
  EXPECT_EQ(folded.norms, 6);
  EXPECT_EQ(Count(graph, "batch_norm_eval"), 1);
}

// The bits would be others, or lines are read in place.
TEST_F(FoldNormsTest, OtherTypesAndOtherNormsStay) {
  for (const char* precision : {"fp32", "bf16"}) {
    Graph graph = Make("wrn-10-1", precision);
    const FoldedNorms folded = Fold(graph);
    EXPECT_EQ(folded.norms + folded.gradients, 0) << precision;
  }
  Graph group_norm = Make("wrn-10-1:group-norm=8", "fp16");
  EXPECT_EQ(Fold(group_norm).norms, 0);
}

// Statistics of some samples each.
TEST_F(FoldNormsTest, GhostNormsStay) {
  Graph graph = Make("wrn-10-1", "fp16");
  for (Node& node : graph.nodes) {
    if (node.attributes.Find("group") != nullptr) node.attributes.Set("group", int64_t{2});
  }
  const FoldedNorms folded = FoldNorms(graph);
  EXPECT_EQ(folded.norms + folded.gradients, 0);
}

}  // namespace
}  // namespace thimble
