#include "thimble/model/network_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "thimble/graph/verify_graph.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class NetworkBuilderTest : public testing::Test {
 protected:
  ValueId Images(const Shape& shape = {2, 8, 8, 3}) { return net_.Input("x", shape, DType::kF32); }
  NetworkBuilder::Built Finish() {
    auto built = std::move(net_).Finish();
    EXPECT_TRUE(built.ok()) << built.error().message;
    if (!built.ok()) return {};
    const auto verified = VerifyGraph(built->graph, BuiltinOps());
    EXPECT_TRUE(verified.ok()) << verified.error().message;
    return std::move(built).value();
  }
  std::string Error() {
    const auto built = std::move(net_).Finish();
    EXPECT_FALSE(built.ok());
    if (built.ok()) return "";
    EXPECT_EQ(built.error().kind, ErrorKind::kBadInput);
    return built.error().message;
  }

  NetworkBuilder net_{BuiltinOps(), Mode::kTrain};
};

TEST_F(NetworkBuilderTest, BuildsWhatItsHeaderShows) {
  ValueId x = net_.Conv("conv", Images(), {.out_channels = 16, .kernel = 3, .padding = 1});
  EXPECT_EQ(net_.shape(x), (Shape{2, 8, 8, 16}));
  x = net_.Relu(net_.BatchNorm("bn", x));
  x = net_.GlobalAveragePool(x);
  EXPECT_EQ(net_.shape(x).elements(), 2 * 16);
  x = net_.Linear("fc", x, 10);
  EXPECT_EQ(net_.shape(x), (Shape{2, 10}));
  const auto labels = net_.Input(kLabelsInput, {2}, DType::kI32);
  net_.SoftmaxCrossEntropy(x, labels);
  const auto built = Finish();
  EXPECT_EQ(built.graph.outputs, (std::vector<ValueId>{built.graph.Find(kLossOutput),
                                                       built.graph.Find(kCorrectOutput)}));
  EXPECT_EQ(CountParameters(built.graph), 16 * 27 + 2 * 16 + 16 * 10 + 10);
}

TEST_F(NetworkBuilderTest, NamesParametersAndStatisticsAsPyTorchDoes) {
  const ValueId x = net_.Conv("conv", Images(), {.out_channels = 4, .padding = 1});
  net_.Linear("fc", net_.GlobalAveragePool(net_.BatchNorm("bn", x)), 5);
  const auto built = Finish();
  const auto value = [&](std::string_view name) -> const Value& {
    const ValueId id = built.graph.Find(name);
    EXPECT_TRUE(id.valid()) << name;
    return built.graph.values[id.valid() ? id.index() : 0];
  };
  EXPECT_EQ(value("conv.weight").shape, (Shape{4, 3, 3, 3}));
  EXPECT_EQ(value("bn.weight").shape, (Shape{4}));
  EXPECT_EQ(value("bn.bias").role, Role::kParameter);
  EXPECT_EQ(value("bn.running_mean").role, Role::kStatistic);
  EXPECT_EQ(value("bn.running_var").role, Role::kStatistic);
  EXPECT_EQ(value("fc.weight").shape, (Shape{5, 4}));
  EXPECT_EQ(value("fc.bias").shape, (Shape{5}));
}

TEST_F(NetworkBuilderTest, EveryParameterAndStatisticHasAStart) {
  const ValueId x = net_.Conv("conv", Images(), {.out_channels = 4, .padding = 1});
  net_.Linear("fc", net_.GlobalAveragePool(net_.BatchNorm("bn", x)), 5);
  const auto built = Finish();
  std::map<std::string, InitRule> rules;
  for (const InitRule& rule : built.inits) EXPECT_TRUE(rules.emplace(rule.name, rule).second);
  for (const Value& value : built.graph.values) {
    const bool starts = IsPersistent(value.role) && !value.producer.valid();
    EXPECT_EQ(rules.count(value.name), starts ? 1U : 0U) << value.name;
  }
  using Kind = InitRule::Kind;
  EXPECT_EQ(rules["conv.weight"].kind, Kind::kNormal);
  EXPECT_DOUBLE_EQ(rules["conv.weight"].scale, std::sqrt(2.0 / (9 * 4)));
  EXPECT_EQ(rules["fc.weight"].kind, Kind::kUniform);
  EXPECT_DOUBLE_EQ(rules["fc.weight"].scale, 0.5);
  for (const char* one : {"bn.weight", "bn.running_var"}) EXPECT_EQ(rules[one].scale, 1) << one;
  for (const char* zero : {"bn.bias", "bn.running_mean", "fc.bias"}) {
    EXPECT_EQ(rules[zero].kind, Kind::kConstant) << zero;
    EXPECT_EQ(rules[zero].scale, 0) << zero;
  }
}

TEST_F(NetworkBuilderTest, TrainingCarriesStatistics) {
  net_.BatchNorm("bn", Images());
  const auto built = Finish();
  ASSERT_EQ(built.graph.carries.size(), 2U);
  EXPECT_EQ(built.graph.carries[0].from, built.graph.Find("bn.running_mean"));
  EXPECT_EQ(built.graph.carries[1].from, built.graph.Find("bn.running_var"));
  EXPECT_EQ(built.graph.nodes.back().phase, Phase::kUpdate);
  EXPECT_EQ(built.graph.nodes.back().attributes.Int("count"), 2 * 8 * 8);
}

TEST(NetworkBuilderEvaluateTest, ReadsStatisticsAndCarriesNothing) {
  NetworkBuilder net(BuiltinOps(), Mode::kEvaluate);
  net.BatchNorm("bn", net.Input("x", {2, 8, 8, 3}, DType::kF32));
  const auto built = std::move(net).Finish();
  ASSERT_TRUE(built.ok());
  EXPECT_TRUE(built->graph.carries.empty());
  ASSERT_EQ(built->graph.nodes.size(), 1U);
  EXPECT_EQ(built->graph.nodes[0].op, "batch_norm_eval");
  EXPECT_EQ(built->inits.size(), 4U);  // the same as in training, for the same files
}

TEST_F(NetworkBuilderTest, RepeatedActivationsGetNamesOfTheirOwn) {
  const ValueId x = net_.BatchNorm("bn", Images());
  net_.Relu(x);
  net_.Relu(x);
  net_.Add(x, x);
  net_.Add(x, x);
  const Graph graph = Finish().graph;
  for (const char* name : {"bn.relu", "bn.relu.2", "bn.sum", "bn.sum.2"}) {
    EXPECT_TRUE(graph.Find(name).valid()) << name;
  }
}

TEST_F(NetworkBuilderTest, ErrorsStickAndTheFirstOneIsReported) {
  const ValueId x = Images();
  EXPECT_FALSE(net_.failed());
  const ValueId bad = net_.Conv("first", x, {.out_channels = 0});
  EXPECT_TRUE(net_.failed());
  EXPECT_FALSE(bad.valid());
  // Every later call returns immediately, for any arguments.
  EXPECT_FALSE(net_.Relu(bad).valid());
  EXPECT_FALSE(net_.Add(bad, x).valid());
  EXPECT_FALSE(net_.BatchNorm("bn", bad).valid());
  EXPECT_FALSE(net_.Conv("second", x, {.out_channels = -1}).valid());
  EXPECT_FALSE(net_.AveragePool(bad, 2, 2).valid());
  EXPECT_FALSE(net_.GlobalAveragePool(bad).valid());
  EXPECT_FALSE(net_.Linear("fc", bad, 10).valid());
  EXPECT_FALSE(net_.Input("more", {1}, DType::kF32).valid());
  EXPECT_FALSE(net_.Parameter("w", {1}, InitRule::Kind::kConstant, 0).valid());
  EXPECT_FALSE(net_.NormalizeImages(bad, {0}, {1}).valid());
  EXPECT_FALSE(net_.SoftmaxCrossEntropy(bad, bad).valid());
  EXPECT_EQ(net_.shape(bad).rank(), 0U);
  EXPECT_THAT(Error(), HasSubstr("layer 'first': 0 output channels"));
}

TEST_F(NetworkBuilderTest, RejectsTwoLayersOfOneName) {
  const ValueId x = net_.Conv("conv", Images(), {.out_channels = 4, .padding = 1});
  net_.Conv("conv", x, {.out_channels = 4, .padding = 1});
  EXPECT_THAT(Error(), HasSubstr("two layers define 'conv.weight'"));
}

TEST_F(NetworkBuilderTest, RejectsLayersOfTwoKindsWithOneName) {
  net_.BatchNorm("a", Images());
  net_.Parameter("a.running_var", {3}, InitRule::Kind::kConstant, 0);
  EXPECT_THAT(Error(), HasSubstr("two layers define 'a.running_var'"));
}

TEST_F(NetworkBuilderTest, RejectsWrongRanks) {
  net_.Conv("conv", Images({2, 8, 8}), {.out_channels = 4});
  EXPECT_THAT(Error(), HasSubstr("layer 'conv': expected an input (B, H, W, C), got (2, 8, 8)"));
}

TEST_F(NetworkBuilderTest, RejectsPoolingOfVectors) {
  net_.GlobalAveragePool(Images({2, 8}));
  EXPECT_THAT(Error(), AllOf(HasSubstr("layer 'pool'"), HasSubstr("got (2, 8)")));
}

TEST_F(NetworkBuilderTest, RejectsGlobalPoolingOfWhatIsNotSquare) {
  net_.GlobalAveragePool(Images({2, 8, 4, 3}));
  EXPECT_THAT(Error(), HasSubstr("(2, 8, 4, 3) is not square"));
}

TEST_F(NetworkBuilderTest, RejectsBatchNormOfScalarsPerSample) {
  net_.BatchNorm("bn", Images({2}));
  EXPECT_THAT(Error(), HasSubstr("layer 'bn': batch norm requires at least 2 dimensions, got (2)"));
}

TEST_F(NetworkBuilderTest, RejectsLinearOfScalarsOrToNothing) {
  net_.Linear("fc", Images({2}), 10);
  EXPECT_THAT(Error(), HasSubstr("layer 'fc': linear cannot map (2) to 10 features"));
  NetworkBuilder other(BuiltinOps(), Mode::kTrain);
  other.Linear("fc", other.Input("x", {2, 3}, DType::kF32), 0);
  EXPECT_THAT(std::move(other).Finish().error().message, HasSubstr("to 0 features"));
}

TEST_F(NetworkBuilderTest, RejectsZeroStrideAndNegativePadding) {
  net_.Conv("conv", Images(), {.out_channels = 4, .stride = 0});
  EXPECT_THAT(Error(), HasSubstr("layer 'conv'"));
  NetworkBuilder other(BuiltinOps(), Mode::kTrain);
  other.Conv("conv", other.Input("x", {2, 8, 8, 3}, DType::kF32),
             {.out_channels = 4, .padding = -1});
  EXPECT_TRUE(other.failed());
}

TEST_F(NetworkBuilderTest, RejectsKernelsLargerThanTheImage) {
  net_.Conv("conv", Images({2, 2, 2, 3}), {.out_channels = 4, .kernel = 5});
  EXPECT_THAT(Error(), HasSubstr("layer 'conv'"));
}

TEST_F(NetworkBuilderTest, RejectsHugeKernels) {
  net_.Conv("conv", Images(), {.out_channels = int64_t{1} << 40, .kernel = int64_t{1} << 40});
  EXPECT_THAT(Error(), HasSubstr("layer 'conv'"));
}

TEST_F(NetworkBuilderTest, RejectsSumsOfDifferentShapes) {
  const ValueId x = net_.BatchNorm("bn", Images());
  net_.Add(x, net_.Conv("conv", x, {.out_channels = 4}));
  EXPECT_THAT(Error(), HasSubstr("layer 'bn'"));
}

TEST_F(NetworkBuilderTest, RejectsLabelsThatAreNoIntegers) {
  net_.SoftmaxCrossEntropy(Images({2, 4}), net_.Input("labels", {2}, DType::kF32));
  EXPECT_THAT(Error(), AllOf(HasSubstr("layer 'loss'"), HasSubstr("expected i32")));
}

TEST_F(NetworkBuilderTest, GroupNormHasParametersAndNoStatistics) {
  const ValueId y = net_.GroupNorm("gn", Images({2, 8, 8, 12}), 3);
  EXPECT_EQ(net_.shape(y), (Shape{2, 8, 8, 12}));
  const auto built = Finish();
  const Node& node = built.graph.node(built.graph.value(y).producer);
  EXPECT_EQ(node.op, "group_norm");
  EXPECT_EQ(node.attributes.Int("groups"), 3);
  EXPECT_EQ(built.graph.value(built.graph.Find("gn.weight")).shape, (Shape{12}));
  EXPECT_EQ(built.graph.value(built.graph.Find("gn.bias")).role, Role::kParameter);
  EXPECT_EQ(CountParameters(built.graph), 24);
  EXPECT_EQ(built.inits.size(), 2U);
  EXPECT_TRUE(built.graph.carries.empty());
}

TEST_F(NetworkBuilderTest, RejectsGroupsThatChannelsCannotBeCutInto) {
  net_.GroupNorm("gn", Images({2, 8, 8, 12}), 5);
  EXPECT_THAT(Error(), AllOf(HasSubstr("layer 'gn'"), HasSubstr("into 5 equal groups")));
}

TEST_F(NetworkBuilderTest, RejectsGroupNormOfAVector) {
  net_.GroupNorm("gn", Images({12}), 3);
  EXPECT_THAT(Error(),
              HasSubstr("layer 'gn': group norm requires at least 2 dimensions, got (12)"));
}

TEST_F(NetworkBuilderTest, DropoutsShareTheirInputsAndDrawForThemselves) {
  net_.set_seed(9);
  const ValueId x = net_.Relu(net_.BatchNorm("bn", Images()));
  const ValueId first = net_.Dropout(x, 0.25);
  const ValueId second = net_.Dropout(first, 0.5);
  const Graph graph = Finish().graph;
  const Node& node = graph.node(graph.value(first).producer);
  const Node& next = graph.node(graph.value(second).producer);
  EXPECT_EQ(node.op, "dropout");
  EXPECT_EQ(node.layer, "bn");
  EXPECT_EQ(graph.value(first).name, "bn.dropout");
  EXPECT_EQ(node.attributes.Float("rate"), 0.25);
  EXPECT_EQ(node.attributes.Int("seed"), 9);
  EXPECT_EQ(node.attributes.Int("stream"), 0);
  EXPECT_EQ(next.attributes.Int("stream"), 1);
  EXPECT_EQ(node.inputs,
            (std::vector<ValueId>{x, graph.Find(kSamplesInput), graph.Find(kEpochInput)}));
  EXPECT_EQ(next.inputs[1], node.inputs[1]);
  EXPECT_EQ(next.inputs[2], node.inputs[2]);
  EXPECT_EQ(graph.value(node.inputs[1]).shape, (Shape{2}));
  EXPECT_EQ(graph.value(node.inputs[1]).role, Role::kInput);
}

TEST_F(NetworkBuilderTest, EvaluationDropsNothing) {
  NetworkBuilder net(BuiltinOps(), Mode::kEvaluate);
  const ValueId x = net.Input("x", {2, 4}, DType::kF32);
  EXPECT_EQ(net.Dropout(x, 0.5), x);
  const auto built = std::move(net).Finish();
  ASSERT_TRUE(built.ok());
  EXPECT_FALSE(built->graph.Find(kSamplesInput).valid());
}

TEST_F(NetworkBuilderTest, RejectsRatesOfOneAndAbove) {
  net_.Dropout(net_.BatchNorm("bn", Images()), 1.0);
  EXPECT_THAT(Error(), AllOf(HasSubstr("layer 'bn'"), HasSubstr("rate is 1")));
}

TEST_F(NetworkBuilderTest, RejectsDropoutWithoutSamples) {
  net_.Dropout(Images({}), 0.5);
  EXPECT_THAT(Error(), HasSubstr("dropout requires a batch dimension"));
}

TEST_F(NetworkBuilderTest, RejectsUnknownOps) {
  net_.Apply({.op = "warp", .inputs = {Images()}, .layer = "bridge"});
  EXPECT_THAT(Error(), HasSubstr("layer 'bridge': unknown op 'warp'"));
}

TEST_F(NetworkBuilderTest, AppliesAnyOp) {
  const ValueId y = net_.Apply({.op = "relu", .inputs = {Images()}, .layer = "mine"});
  EXPECT_EQ(net_.shape(y), (Shape{2, 8, 8, 3}));
  EXPECT_TRUE(Finish().graph.Find("mine.y").valid());
}

TEST_F(NetworkBuilderTest, OwnErrorsAreReported) {
  net_.Fail(BadInput("no such thing"));
  net_.Fail(BadInput("nor such"));
  EXPECT_EQ(Error(), "no such thing");
}

TEST_F(NetworkBuilderTest, ErrorsBeginWithThePlace) {
  const ValueId x = Images();
  net_.set_place("net.toml:7");
  net_.Conv("broken", x, {.out_channels = 0});
  net_.set_place("net.toml:8");
  net_.Conv("broken", x, {.out_channels = 0});
  EXPECT_THAT(Error(), testing::StartsWith("net.toml:7: layer 'broken': "));
}

TEST_F(NetworkBuilderTest, ErrorsOutsideAFileHaveNoPlace) {
  const ValueId x = Images();
  net_.set_place("net.toml:7");
  net_.set_place("");
  net_.Conv("broken", x, {.out_channels = 0});
  EXPECT_THAT(Error(), testing::StartsWith("layer 'broken': "));
}

}  // namespace
}  // namespace thimble
