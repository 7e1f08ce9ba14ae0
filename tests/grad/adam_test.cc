#include "thimble/grad/adam.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "thimble/grad/training_graph.h"
#include "thimble/graph/append_node.h"
#include "thimble/graph/verify_graph.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

using testing::ElementsAre;

// A parameter with a gradient and all numbers that updates may read.
class AdamTest : public testing::Test {
 protected:
  AdamTest() {
    of_.parameter = graph_.AddValue({"w", {3}, DType::kF32, Role::kParameter, {}, {}});
    of_.gradient = graph_.AddValue({"dw", {3}, DType::kF32, Role::kInput, {}, {}});
    of_.index = 5;
    numbers_.learning_rate = AddNumber("learning_rate", DType::kF32);
    numbers_.seen = AddNumber("seen", DType::kI32);
    numbers_.update = AddNumber("update", DType::kI32);
    numbers_.gradient_factor = AddNumber("factor", DType::kF32);
  }
  ValueId AddNumber(const char* name, DType dtype) {
    return graph_.AddValue({name, {1}, dtype, Role::kInput, {}, {}});
  }
  const Node& Updated(const UpdateSpec& spec) {
    const auto appended = MakeAdam(spec)->AppendUpdate(graph_, BuiltinOps(), of_, numbers_);
    EXPECT_TRUE(appended.ok()) << appended.error().message;
    const auto verified = VerifyGraph(graph_, BuiltinOps());
    EXPECT_TRUE(verified.ok()) << verified.error().message;
    return graph_.nodes.back();
  }

  Graph graph_;
  ParameterGradient of_;
  UpdateNumbers numbers_;
};

TEST_F(AdamTest, CarriesTheParameterAndBothStates) {
  const Node& node = Updated({});
  EXPECT_EQ(node.op, "adam_update");
  EXPECT_EQ(node.inputs.back(), numbers_.gradient_factor);
  std::vector<std::string> carried;
  for (const Carry& carry : graph_.carries) carried.push_back(graph_.value(carry.from).name);
  EXPECT_THAT(carried, ElementsAre("w", "adam_m.w", "adam_root.w"));
  EXPECT_EQ(graph_.value(graph_.Find("adam_m.w")).role, Role::kState);
  EXPECT_EQ(graph_.value(graph_.Find("adam_root.w")).shape, Shape{3});
}

TEST_F(AdamTest, SettingsReachTheNode) {
  numbers_.gradient_factor = {};
  const Node& node = Updated(
      {.optimizer =
           {.name = "adam", .weight_decay = 0.25, .beta1 = 0.5, .beta2 = 0.75, .epsilon = 1e-3},
       .stochastic_rounding = true,
       .seed = 9});
  EXPECT_EQ(node.inputs.size(), 6U);
  EXPECT_EQ(node.attributes.Float("beta1"), 0.5);
  EXPECT_EQ(node.attributes.Float("beta2"), 0.75);
  EXPECT_EQ(node.attributes.Float("epsilon"), 1e-3);
  EXPECT_EQ(node.attributes.Float("weight_decay"), 0.25);
  EXPECT_EQ(node.attributes.Int("stochastic"), 1);
  EXPECT_EQ(node.attributes.Int("seed"), 9);
  EXPECT_EQ(node.attributes.Int("stream"), 5);
}

TEST_F(AdamTest, HasTheDefaultsOfPyTorch) {
  const Node& node = Updated({.optimizer = {.name = "adam"}});
  EXPECT_EQ(node.attributes.Float("beta1"), 0.9);
  EXPECT_EQ(node.attributes.Float("beta2"), 0.999);
  EXPECT_EQ(node.attributes.Float("epsilon"), 1e-8);
}

TEST_F(AdamTest, PartsAddToBothMoments) {
  const UpdateSpec spec{.optimizer = {.name = "adam", .beta2 = 0.75},
                        .in_backward = true,
                        .stochastic_rounding = true};
  EXPECT_EQ(MakeAdam(spec)->WhyNotByParts(), "");
  EXPECT_TRUE(ChooseGradientUse(spec, /*in_parts=*/false)->in_backward);
  EXPECT_TRUE(ChooseGradientUse(spec, /*in_parts=*/true)->in_backward);
  ASSERT_TRUE(MakeAdam(spec)->AppendGather(graph_, BuiltinOps(), of_, numbers_).ok());
  const Node& node = graph_.nodes.back();
  EXPECT_EQ(node.op, "adam_gather");
  EXPECT_EQ(node.inputs[3], numbers_.seen);
  EXPECT_EQ(node.inputs.back(), numbers_.gradient_factor);
  EXPECT_EQ(node.attributes.Float("beta2"), 0.75);
  EXPECT_EQ(node.attributes.Int("stream"), 5);
  std::vector<std::string> carried;
  for (const Carry& carry : graph_.carries) carried.push_back(graph_.value(carry.from).name);
  EXPECT_THAT(carried, ElementsAre("adam_m.w", "adam_root.w"));
  const auto verified = VerifyGraph(graph_, BuiltinOps());
  EXPECT_TRUE(verified.ok()) << verified.error().message;
}

// Those of vectors and small matrices stay whole.
TEST_F(AdamTest, FactoredMomentsOfLargeMatrices) {
  const UpdateSpec spec{.optimizer = {.name = "adam", .factored = true}};
  EXPECT_EQ(Updated(spec).op, "adam_update");
  for (const auto& [shape, factored] :
       {std::pair{Shape{16, 16}, true}, {Shape{15, 16}, false}, {Shape{40, 3, 3, 2}, true}}) {
    const std::string name = "m" + ToString(shape);
    of_.parameter = graph_.AddValue({name, shape, DType::kF32, Role::kParameter, {}, {}});
    of_.gradient = graph_.AddValue({"d" + name, shape, DType::kF32, Role::kInput, {}, {}});
    EXPECT_EQ(Updated(spec).op, factored ? "adam_factored_update" : "adam_update") << name;
    const ValueId rows = graph_.Find("adam_rows." + name);
    ASSERT_EQ(rows.valid(), factored);
    if (!factored) continue;
    EXPECT_EQ(graph_.value(rows).shape, Shape{shape[0]});
    EXPECT_EQ(graph_.value(graph_.Find("adam_columns." + name)).shape,
              Shape{shape.elements() / shape[0]});
    EXPECT_FALSE(graph_.Find("adam_root." + name).valid());
  }
}

TEST_F(AdamTest, FactoredMomentsByParts) {
  const UpdateSpec spec{.optimizer = {.name = "adam", .factored = true}, .in_backward = true};
  of_.parameter = graph_.AddValue({"m", {32, 32}, DType::kF32, Role::kParameter, {}, {}});
  of_.gradient = graph_.AddValue({"dm", {32, 32}, DType::kF32, Role::kInput, {}, {}});
  ASSERT_TRUE(MakeAdam(spec)->AppendGather(graph_, BuiltinOps(), of_, numbers_).ok());
  EXPECT_EQ(graph_.nodes.back().op, "adam_factored_gather");
  Graph update;
  for (const auto& [name, dtype] :
       {std::pair{"learning_rate", DType::kF32}, {"update", DType::kI32}}) {
    (dtype == DType::kF32 ? numbers_.learning_rate : numbers_.update) =
        update.AddValue({name, {1}, dtype, Role::kInput, {}, {}});
  }
  of_.parameter = update.AddValue({"m", {32, 32}, DType::kF32, Role::kParameter, {}, {}});
  ASSERT_TRUE(MakeAdam(spec)->AppendApply(update, BuiltinOps(), of_, numbers_).ok());
  EXPECT_EQ(update.nodes.back().op, "adam_factored_apply");
  EXPECT_TRUE(VerifyGraph(update, BuiltinOps()).ok());
}

// The factor is in the moments already.
TEST_F(AdamTest, AfterThePartsTheWeightFollowsTheMoments) {
  const UpdateSpec spec{.optimizer = {.name = "adam", .weight_decay = 0.25}};
  ASSERT_TRUE(MakeAdam(spec)->AppendApply(graph_, BuiltinOps(), of_, numbers_).ok());
  const Node& node = graph_.nodes.back();
  EXPECT_EQ(node.op, "adam_apply");
  EXPECT_EQ(node.inputs.back(), numbers_.update);
  EXPECT_EQ(node.attributes.Float("weight_decay"), 0.25);
  ASSERT_EQ(graph_.carries.size(), 1U);
  EXPECT_EQ(graph_.value(graph_.carries[0].from).name, "w");
}

// Nothing else asks for it here.
TEST_F(AdamTest, TheNumberOfTheUpdateIsAnInputOfTheTrainingGraph) {
  for (const char* optimizer : {"sgd", "adam"}) {
    Graph graph;
    const ValueId x = graph.AddValue({"x", {2, 3}, DType::kF32, Role::kInput, {}, {}});
    const ValueId w = graph.AddValue({"w", {4, 3}, DType::kF32, Role::kParameter, {}, {}});
    const ValueId b = graph.AddValue({"b", {4}, DType::kF32, Role::kParameter, {}, {}});
    const ValueId labels = graph.AddValue({"labels", {2}, DType::kI32, Role::kInput, {}, {}});
    const auto scores = AppendNode(graph, BuiltinOps(), {.op = "linear", .inputs = {x, w, b}});
    const auto loss = AppendNode(graph, BuiltinOps(),
                                 {.op = "softmax_cross_entropy", .inputs = {(*scores)[0], labels}});
    ASSERT_TRUE(
        AppendUpdate(graph, BuiltinOps(), (*loss)[0], {.optimizer = {.name = optimizer}}).ok());
    EXPECT_EQ(graph.Find(kUpdateInput).valid(), std::string(optimizer) == "adam");
  }
}

}  // namespace
}  // namespace thimble
