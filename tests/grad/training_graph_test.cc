#include "thimble/grad/training_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/model_graphs.h"
#include "thimble/graph/verify_graph.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

using testing::HasSubstr;

std::vector<const Node*> Updates(const Graph& graph, std::string_view op) {
  std::vector<const Node*> nodes;
  for (const Node& node : graph.nodes) {
    if (node.op == op) nodes.push_back(&node);
  }
  return nodes;
}

std::vector<ValueId> Parameters(const Graph& graph) {
  std::vector<ValueId> parameters;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value& value = graph.values[i];
    if (value.role == Role::kParameter && !value.producer.valid()) parameters.emplace_back(i);
  }
  return parameters;
}

bool IsCarried(const Graph& graph, ValueId from) {
  return std::any_of(graph.carries.begin(), graph.carries.end(),
                     [&](const Carry& carry) { return carry.from == from; });
}

class TrainingGraphTest : public testing::Test {
 protected:
  static Graph Make(const OptimizerSpec& optimizer) {
    Graph graph = TrainingGraph("wrn-10-1", 2, TinyImages(), optimizer);
    const auto verified = VerifyGraph(graph, BuiltinOps());
    EXPECT_TRUE(verified.ok()) << verified.error().message;
    return graph;
  }
  // A network of one linear layer of this name.
  Result<void> Append(const std::string& layer, Graph& graph, const OptimizerSpec& optimizer = {}) {
    NetworkBuilder net(BuiltinOps(), Mode::kTrain);
    const ValueId x = net.Input("x", {2, 3}, DType::kF32);
    const ValueId labels = net.Input(kLabelsInput, {2}, DType::kI32);
    const ValueId loss =
        net.SoftmaxCrossEntropy(net.Linear(layer, net.Linear("b", x, 4), 4), labels);
    auto built = std::move(net).Finish();
    if (!built.ok()) return built.error();
    graph = std::move(built->graph);
    return AppendUpdate(graph, BuiltinOps(), loss, optimizer);
  }
};

TEST_F(TrainingGraphTest, EveryParameterIsUpdatedAndCarried) {
  for (double momentum : {0.0, 0.9}) {
    const Graph graph = Make({.momentum = momentum});
    const auto parameters = Parameters(graph);
    EXPECT_EQ(parameters.size(), 25U);
    EXPECT_EQ(Updates(graph, momentum == 0 ? "sgd_update_plain" : "sgd_update").size(), 25U);
    EXPECT_EQ(Updates(graph, momentum == 0 ? "sgd_update" : "sgd_update_plain").size(), 0U);
    for (ValueId parameter : parameters) {
      EXPECT_TRUE(IsCarried(graph, parameter)) << graph.value(parameter).name;
    }
  }
}

TEST_F(TrainingGraphTest, MomentumIsOneStatePerParameter) {
  const Graph graph = Make({.momentum = 0.9});
  for (ValueId parameter : Parameters(graph)) {
    const ValueId momentum = graph.Find("momentum." + graph.value(parameter).name);
    ASSERT_TRUE(momentum.valid()) << graph.value(parameter).name;
    EXPECT_EQ(graph.value(momentum).role, Role::kState);
    EXPECT_EQ(graph.value(momentum).shape, graph.value(parameter).shape);
    EXPECT_TRUE(IsCarried(graph, momentum));
  }
}

TEST_F(TrainingGraphTest, PlainUpdatesHaveNoState) {
  const Graph graph = Make({.momentum = 0});
  for (const Value& value : graph.values) EXPECT_NE(value.role, Role::kState) << value.name;
}

TEST_F(TrainingGraphTest, GradientsKnowTheirParameter) {
  const Graph graph = Make({.momentum = 0.9});
  for (const Node* node : Updates(graph, "sgd_update")) {
    const Value& gradient = graph.value(node->inputs[1]);
    EXPECT_EQ(gradient.role, Role::kGradient);
    EXPECT_EQ(gradient.gradient_of, node->inputs[0]) << gradient.name;
    EXPECT_EQ(gradient.name, "d" + graph.value(node->inputs[0]).name);
    EXPECT_EQ(gradient.shape, graph.value(node->inputs[0]).shape);
    EXPECT_EQ(node->layer, LayerOf(graph, node->inputs[0]));
    EXPECT_EQ(graph.value(node->inputs[0]).name.find(node->layer + "."), 0U) << node->layer;
  }
}

TEST_F(TrainingGraphTest, ActivationGradientsKnowTheirValue) {
  const Graph graph = Make({});
  const ValueId gradient = graph.Find("dfc.y");
  ASSERT_TRUE(gradient.valid());
  EXPECT_EQ(graph.value(gradient).gradient_of, graph.Find("fc.y"));
}

TEST_F(TrainingGraphTest, SettingsReachTheUpdates) {
  const Graph graph = Make({.momentum = 0.8, .nesterov = true, .weight_decay = 0.25});
  for (const Node* node : Updates(graph, "sgd_update")) {
    EXPECT_EQ(node->attributes.Float("momentum"), 0.8);
    EXPECT_EQ(node->attributes.Float("weight_decay"), 0.25);
    EXPECT_EQ(node->attributes.Int("nesterov"), 1);
  }
  const Graph plain = Make({.momentum = 0, .weight_decay = 0.25});
  for (const Node* node : Updates(plain, "sgd_update_plain")) {
    EXPECT_EQ(node->attributes.Float("weight_decay"), 0.25);
  }
}

TEST_F(TrainingGraphTest, AllReadOneLearningRate) {
  const Graph graph = Make({});
  const ValueId rate = graph.Find(kLearningRateInput);
  ASSERT_TRUE(rate.valid());
  EXPECT_EQ(graph.value(rate).role, Role::kInput);
  EXPECT_EQ(graph.value(rate).shape, (Shape{1}));
  for (const Node* node : Updates(graph, "sgd_update")) EXPECT_EQ(node->inputs.back(), rate);
}

TEST_F(TrainingGraphTest, BackwardStartsFromOne) {
  const Graph graph = Make({});
  const ValueId seed = graph.Find("dloss");
  ASSERT_TRUE(seed.valid());
  const Node& fill = graph.node(graph.value(seed).producer);
  EXPECT_EQ(fill.op, "fill");
  EXPECT_EQ(fill.attributes.Float("value"), 1);
  EXPECT_EQ(fill.phase, Phase::kBackward);
}

TEST_F(TrainingGraphTest, RejectsParametersWithoutInfluence) {
  NetworkBuilder net(BuiltinOps(), Mode::kTrain);
  const ValueId x = net.Input("x", {2, 3}, DType::kF32);
  net.Linear("aside", x, 4);
  const ValueId loss =
      net.SoftmaxCrossEntropy(net.Linear("fc", x, 4), net.Input(kLabelsInput, {2}, DType::kI32));
  Graph graph = std::move(net).Finish().value().graph;
  const auto appended = AppendUpdate(graph, BuiltinOps(), loss, {});
  ASSERT_FALSE(appended.ok());
  EXPECT_THAT(appended.error().message, HasSubstr("'aside.weight' has no influence on the loss"));
}

TEST_F(TrainingGraphTest, RejectsALayerThatUsesAnOptimizersName) {
  Graph graph;
  ASSERT_TRUE(Append("a", graph).ok());
  const auto appended = Append("momentum.b", graph);
  ASSERT_FALSE(appended.ok());
  EXPECT_EQ(appended.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(appended.error().message, HasSubstr("'momentum.b.weight' belongs to the optimizer"));
  // Without momentum the name is free.
  EXPECT_TRUE(Append("momentum.b", graph, {.momentum = 0}).ok());
}

}  // namespace
}  // namespace thimble
