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
  // A network of one linear layer with this name.
  Result<void> Append(const std::string& layer, Graph& graph, const OptimizerSpec& optimizer = {}) {
    NetworkBuilder net(BuiltinOps(), Mode::kTrain);
    const ValueId x = net.Input("x", {2, 3}, DType::kF32);
    const ValueId labels = net.Input(kLabelsInput, {2}, DType::kI32);
    const ValueId loss =
        net.SoftmaxCrossEntropy(net.Linear(layer, net.Linear("b", x, 4), 4), labels);
    auto built = std::move(net).Finish();
    if (!built.ok()) return built.error();
    graph = std::move(built->graph);
    return AppendUpdate(graph, BuiltinOps(), loss, {.optimizer = optimizer});
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

TEST_F(TrainingGraphTest, BackwardStartsFromTheWeightOfTheLoss) {
  const Graph graph = Make({});
  const ValueId weight = graph.Find(kLossWeightInput);
  ASSERT_TRUE(weight.valid());
  EXPECT_EQ(graph.value(weight).role, Role::kInput);
  const auto backward = Updates(graph, "softmax_cross_entropy_grad");
  ASSERT_EQ(backward.size(), 1U);
  EXPECT_THAT(backward[0]->inputs, testing::Contains(weight));
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
  EXPECT_THAT(appended.error().message,
              HasSubstr("'momentum.b.weight' is reserved for the optimizer"));
  // Without momentum the name is free.
  EXPECT_TRUE(Append("momentum.b", graph, {.momentum = 0}).ok());
}

// The forward graph of three samples out of seven, and the graphs made from it.
class PartGraphTest : public testing::Test {
 protected:
  static constexpr BatchShare kShare{3, 7};

  static Graph Part() {
    Network network = MakeNetwork("wrn-10-1", kShare.samples, Mode::kTrain, TinyImages());
    const auto appended = AppendSums(network.graph, BuiltinOps(), network.loss, {}, kShare);
    EXPECT_TRUE(appended.ok()) << appended.error().message;
    return std::move(network.graph);
  }
  static Graph Update(const OptimizerSpec& optimizer) {
    const Network network = MakeNetwork("wrn-10-1", kShare.samples, Mode::kTrain, TinyImages());
    return MakeUpdateGraph(network.graph, BuiltinOps(), {.optimizer = optimizer}, kShare).value();
  }
  // A network of linear layers with these names, as a part.
  static Result<void> AppendTo(const std::string& first, const std::string& second) {
    NetworkBuilder net(BuiltinOps(), Mode::kTrain);
    const ValueId x = net.Input("x", {2, 3}, DType::kF32);
    const ValueId labels = net.Input(kLabelsInput, {2}, DType::kI32);
    const ValueId loss =
        net.SoftmaxCrossEntropy(net.Linear(second, net.Linear(first, x, 4), 4), labels);
    Graph graph = std::move(net).Finish().value().graph;
    return AppendSums(graph, BuiltinOps(), loss, {}, {2, 4});
  }
};

TEST_F(PartGraphTest, BothAreSoundAndShareTheirAccumulators) {
  const Graph part = Part();
  const Graph update = Update({});
  for (const Graph* graph : {&part, &update}) {
    const auto verified = VerifyGraph(*graph, BuiltinOps());
    EXPECT_TRUE(verified.ok()) << verified.error().message;
  }
  size_t accumulators = 0;
  for (const Value& value : part.values) {
    if (value.role != Role::kAccumulator || value.producer.valid()) continue;
    ++accumulators;
    const ValueId there = update.Find(value.name);
    ASSERT_TRUE(there.valid()) << value.name;
    EXPECT_EQ(update.value(there).role, Role::kAccumulator);
    EXPECT_EQ(update.value(there).shape, value.shape);
    EXPECT_FALSE(IsCarried(update, there)) << value.name;
  }
  EXPECT_EQ(accumulators, 25U + 2 * 7);
}

TEST_F(PartGraphTest, APartChangesNothingButAccumulators) {
  const Graph graph = Part();
  for (const Carry& carry : graph.carries) {
    EXPECT_EQ(graph.value(carry.from).role, Role::kAccumulator) << graph.value(carry.from).name;
  }
  for (const Node& node : graph.nodes) EXPECT_NE(node.phase, Phase::kUpdate) << node.op;
  EXPECT_EQ(Updates(graph, "accumulate").size(), 25U);
  EXPECT_EQ(Updates(graph, "merge_statistics").size(), 7U);
  for (const Node* node : Updates(graph, "merge_statistics")) {
    EXPECT_EQ(node->attributes.Int("samples"), 3);
    EXPECT_EQ(graph.value(node->inputs[0]).name, "sum." + node->layer + ".running_mean");
  }
}

TEST_F(PartGraphTest, AGradientIsAddedAsSoonAsItIsThere) {
  const Graph graph = Part();
  for (size_t index = 0; index < graph.nodes.size(); ++index) {
    const Node& node = graph.nodes[index];
    if (node.op != "accumulate") continue;
    const size_t producer = graph.value(node.inputs[1]).producer.index();
    // A norm has two gradients.
    EXPECT_LE(index - producer, 2U) << node.layer;
    EXPECT_EQ(graph.value(node.inputs[1]).role, Role::kGradient);
    EXPECT_EQ("sum.d" + graph.value(node.inputs[0]).name.substr(4),
              "sum." + graph.value(node.inputs[1]).name);
  }
}

TEST_F(PartGraphTest, TheUpdateIsThatOfAWholeBatch) {
  const OptimizerSpec optimizer{.momentum = 0.8, .nesterov = true, .weight_decay = 0.25};
  const Graph whole = TrainingGraph("wrn-10-1", kShare.batch, TinyImages(), optimizer);
  const Graph update = Update(optimizer);
  for (const char* op : {"sgd_update", "batch_norm_update"}) {
    const auto expected = Updates(whole, op);
    const auto actual = Updates(update, op);
    ASSERT_EQ(actual.size(), expected.size()) << op;
    for (const Node* node : actual) {
      const auto same = [&](const Node* other) {
        return whole.value(other->inputs[0]).name == update.value(node->inputs[0]).name;
      };
      const auto found = std::find_if(expected.begin(), expected.end(), same);
      ASSERT_NE(found, expected.end()) << node->layer;
      EXPECT_EQ(node->attributes, (*found)->attributes) << node->layer;
      EXPECT_EQ(node->layer, (*found)->layer);
      for (ValueId output : node->outputs)
        EXPECT_TRUE(whole.Find(update.value(output).name).valid());
    }
  }
  EXPECT_EQ(Updates(Update({.momentum = 0}), "sgd_update_plain").size(), 25U);
}

TEST_F(PartGraphTest, RejectsALayerThatUsesAnAccumulatorsName) {
  EXPECT_TRUE(AppendTo("a", "b").ok());
  const auto appended = AppendTo("a", "sum.a");
  ASSERT_FALSE(appended.ok());
  EXPECT_EQ(appended.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(appended.error().message, HasSubstr("'sum.a.weight' is reserved for the optimizer"));
}

TEST_F(PartGraphTest, RejectsUpdatesThatCannotBeDoneInParts) {
  // A graph that already has an update.
  Graph graph = TrainingGraph("wrn-10-1", 2, TinyImages());
  const auto appended = AppendSums(graph, BuiltinOps(), graph.Find(kLossOutput), {}, {2, 4});
  ASSERT_FALSE(appended.ok());
  EXPECT_THAT(appended.error().message, HasSubstr("sgd_update does not support parts"));
}

// How gradients are checked and used.
class GradientUseTest : public testing::Test {
 protected:
  static Graph Whole(const UpdateSpec& spec) {
    Network network = MakeNetwork("wrn-10-1", 2, Mode::kTrain, TinyImages());
    const auto appended = AppendUpdate(network.graph, BuiltinOps(), network.loss, spec);
    EXPECT_TRUE(appended.ok()) << appended.error().message;
    return Verified(std::move(network.graph));
  }
  static Graph Part(const UpdateSpec& spec) {
    Network network = MakeNetwork("wrn-10-1", 2, Mode::kTrain, TinyImages());
    EXPECT_TRUE(AppendSums(network.graph, BuiltinOps(), network.loss, spec, {2, 4}).ok());
    return Verified(std::move(network.graph));
  }
  static Graph Update(const UpdateSpec& spec) {
    const Network network = MakeNetwork("wrn-10-1", 2, Mode::kTrain, TinyImages());
    return Verified(MakeUpdateGraph(network.graph, BuiltinOps(), spec, {2, 4}).value());
  }
  static Graph Verified(Graph graph) {
    const auto verified = VerifyGraph(graph, BuiltinOps());
    EXPECT_TRUE(verified.ok()) << verified.error().message;
    return graph;
  }
  static constexpr size_t kParameters = 25;
  static constexpr size_t kLarge = 4;  // convolutions with at least 4096 weights
  static constexpr size_t kNorms = 7;
};

TEST_F(GradientUseTest, OneCheckDecidesForTheWholeUpdate) {
  const UpdateSpec spec{.loss_scale = {.initial = 8}};
  for (const Graph& graph : {Whole(spec), Update(spec)}) {
    const auto checks = Updates(graph, "check_gradients");
    ASSERT_EQ(checks.size(), 1U);
    EXPECT_EQ(checks[0]->inputs.size(), 1 + kParameters);
    const ValueId factor = checks[0]->outputs[0];
    EXPECT_EQ(Updates(graph, "sgd_update").size(), kParameters);
    for (const Node* node : Updates(graph, "sgd_update")) EXPECT_EQ(node->inputs.back(), factor);
    EXPECT_EQ(Updates(graph, "batch_norm_update").size(), kNorms);
    for (const Node* node : Updates(graph, "batch_norm_update")) {
      EXPECT_EQ(node->inputs.back(), factor);
    }
    EXPECT_EQ(Updates(graph, "adjust_loss_scale").size(), 1U);
  }
}

TEST_F(GradientUseTest, APartReadsTheScaleAndLeavesIt) {
  const Graph part = Part({.loss_scale = {.initial = 8}});
  EXPECT_EQ(Updates(part, "scale_loss").size(), 1U);
  EXPECT_FALSE(IsCarried(part, part.Find(kLossScaleState)));
}

TEST_F(GradientUseTest, AWholeBatchIsUpdatedInBackward) {
  const Graph graph = Whole({.in_backward = true});
  EXPECT_EQ(Updates(graph, "sgd_update").size(), kParameters);
  size_t in_backward = 0;
  for (const Node* node : Updates(graph, "sgd_update")) {
    const bool is_small = graph.value(node->inputs[0]).shape.elements() < 4096;
    EXPECT_EQ(node->phase, is_small ? Phase::kUpdate : Phase::kBackward) << node->layer;
    in_backward += is_small ? 0 : 1;
  }
  EXPECT_EQ(in_backward, kLarge);
}

TEST_F(GradientUseTest, EachLargeGradientInBackwardHasACheckOfItsOwn) {
  const Graph graph = Whole({.loss_scale = {.initial = 8}, .in_backward = true});
  EXPECT_EQ(Updates(graph, "check_gradients").size(), kLarge + 1);
  ValueId last_factor;
  for (const Node* node : Updates(graph, "check_gradients")) {
    const bool is_last = node->phase == Phase::kUpdate;
    EXPECT_EQ(node->inputs.size(), 1 + (is_last ? kParameters - kLarge : 1));
    if (is_last) last_factor = node->outputs[0];
  }
  for (const Node* node : Updates(graph, "batch_norm_update")) {
    EXPECT_EQ(node->inputs.back(), last_factor) << "NaN in the forward pass reaches this check";
  }
}

TEST_F(GradientUseTest, SumsOfStatisticsAreCheckedIfPartsAre) {
  const Graph update = Update({.loss_scale = {.initial = 8}, .in_backward = true});
  const auto checks = Updates(update, "check_gradients");
  const auto statistics = Updates(update, "batch_norm_update");
  ASSERT_EQ(checks.size(), 1U);
  EXPECT_EQ(checks[0]->inputs.size(), 1 + 2 * statistics.size());
  for (const Node* node : statistics) EXPECT_EQ(node->inputs.back(), checks[0]->outputs[0]);
}

TEST_F(GradientUseTest, PartsAddToTheMomentum) {
  const UpdateSpec spec{.in_backward = true};
  const Graph part = Part(spec);
  EXPECT_EQ(Updates(part, "sgd_gather").size(), kParameters);
  for (const Value& value : part.values) {
    const bool is_gradient_sum =
        value.role == Role::kAccumulator && value.name.find("running") == std::string::npos;
    EXPECT_FALSE(is_gradient_sum) << value.name;
  }
  const Graph update = Update(spec);
  EXPECT_EQ(Updates(update, "sgd_apply").size(), kParameters);
  for (ValueId parameter : Parameters(update)) EXPECT_TRUE(IsCarried(update, parameter));
}

TEST_F(GradientUseTest, KeepsAnArrayWhereTheWholeGradientIsNeeded) {
  EXPECT_FALSE(ChooseGradientUse({.clip = 1, .in_backward = true}, false)->in_backward);
  const UpdateSpec nesterov{.optimizer = {.nesterov = true}, .in_backward = true};
  EXPECT_TRUE(ChooseGradientUse(nesterov, false)->in_backward);
  EXPECT_FALSE(ChooseGradientUse(nesterov, true)->in_backward);
  EXPECT_EQ(Updates(Part(nesterov), "accumulate").size(), kParameters);
}

}  // namespace
}  // namespace thimble
