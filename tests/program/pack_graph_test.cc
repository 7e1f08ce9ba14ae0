#include "thimble/program/sparsity/pack_graph.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/model_graphs.h"
#include "thimble/graph/verify_graph.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

// A small network with backward and update, and its sparse tensors.
class PackGraphTest : public testing::Test {
 protected:
  static Graph Trained(const UpdateSpec& spec) {
    Graph graph = MakeNetwork("wrn-10-1", 2, Mode::kTrain, TinyImages()).graph;
    EXPECT_TRUE(AppendUpdate(graph, BuiltinOps(), graph.Find("loss"), spec).ok());
    return graph;
  }
  void Pack(Graph& graph) {
    tensors_ = ChooseSparseTensors(graph, BuiltinOps(), 0.5, "").value();
    FuseGradientUses(graph, tensors_);
    PackTensors(graph, tensors_);
    const auto verified = VerifyGraph(graph, BuiltinOps());
    EXPECT_TRUE(verified.ok()) << verified.error().message;
  }
  static int64_t Count(const Graph& graph, std::string_view op) {
    return std::ranges::count_if(graph.nodes, [&](const Node& node) { return node.op == op; });
  }
  int64_t num_tensors() const { return std::ssize(tensors_.tensors); }

  SparseTensors tensors_;
};

TEST_F(PackGraphTest, WeightsGradientsAndMomentumSharePools) {
  Graph graph = Trained({});
  const int64_t parameters = CountParameters(graph);
  Pack(graph);
  EXPECT_EQ(CountParameters(graph), parameters);
  for (const char* name : {kSparseWeights, kSparseMomentum, kSparseGradients}) {
    const ValueId pool = graph.Find(name);
    ASSERT_TRUE(pool.valid()) << name;
    EXPECT_EQ(graph.value(pool).shape, Shape{tensors_.active}) << name;
  }
  for (const SparseTensor& tensor : tensors_.tensors) {
    for (const std::string prefix : {"", "momentum."}) {
      const ValueId id = graph.Find(prefix + tensor.name);
      EXPECT_TRUE(graph.value(id).is_packed()) << tensor.name;
      EXPECT_TRUE(graph.value(LastVersion(graph, id)).is_packed()) << tensor.name;
      EXPECT_EQ(graph.value(id).size_bytes(), 0U);
    }
  }
  EXPECT_EQ(Count(graph, "conv2d_sgd_update"), 0);
}

TEST_F(PackGraphTest, GradientsUsedInBackwardHaveNoMemory) {
  UpdateSpec spec{.in_backward = true};
  spec.sparsity.fraction = 0.5;
  Graph graph = Trained(spec);
  const int64_t gradients = Count(graph, "conv2d_grad_weight");
  Pack(graph);
  EXPECT_EQ(Count(graph, "conv2d_sgd_update"), num_tensors());
  EXPECT_EQ(Count(graph, "conv2d_grad_weight"), gradients - num_tensors());
  EXPECT_FALSE(graph.Find(kSparseGradients).valid());
}

// The gradient of a layer's output stands for that of its weights.
TEST_F(PackGraphTest, ChecksReadWhatGradientsAreMadeFrom) {
  UpdateSpec spec{.loss_scale = {.initial = 8}, .in_backward = true};
  spec.sparsity.fraction = 0.5;
  Graph graph = Trained(spec);
  const int64_t checks = Count(graph, "check_gradients");
  Pack(graph);
  EXPECT_EQ(Count(graph, "check_gradients"), checks);
  EXPECT_EQ(Count(graph, "conv2d_sgd_update"), num_tensors());
}

TEST_F(PackGraphTest, PartsAddTheirGradientsToOnePool) {
  Graph graph = MakeNetwork("wrn-10-1", 2, Mode::kTrain, TinyImages()).graph;
  ASSERT_TRUE(AppendSums(graph, BuiltinOps(), graph.Find("loss"), {}, {2, 4}).ok());
  Pack(graph);
  EXPECT_EQ(Count(graph, "conv2d_accumulate"), num_tensors());
  EXPECT_TRUE(graph.Find(kSparseGradients).valid());
  EXPECT_FALSE(graph.Find(kSparseMomentum).valid());
}

TEST_F(PackGraphTest, RewiringChangesPoolsAsAWhole) {
  for (const double momentum : {0.9, 0.0}) {
    Graph graph = Trained({.optimizer = {.momentum = momentum}});
    Pack(graph);
    const Graph rewiring =
        MakeRewiring(graph, BuiltinOps(), tensors_, {.quota = 5, .seed = 3}).value();
    EXPECT_TRUE(VerifyGraph(rewiring, BuiltinOps()).ok());
    EXPECT_EQ(rewiring.nodes.size(), 1U);
    EXPECT_EQ(rewiring.carries.size(), momentum == 0 ? 3U : 4U);
    EXPECT_TRUE(rewiring.Find(kSparseMoved).valid());
  }
}

}  // namespace
}  // namespace thimble
