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
using testing::HasSubstr;

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

TEST_F(AdamTest, PartsCannotBeGathered) {
  const UpdateSpec spec{.optimizer = {.name = "adam"}, .in_backward = true};
  EXPECT_THAT(MakeAdam(spec)->WhyNotByParts(), HasSubstr("square of the whole gradient"));
  EXPECT_TRUE(ChooseGradientUse(spec, /*in_parts=*/false)->in_backward);
  EXPECT_FALSE(ChooseGradientUse(spec, /*in_parts=*/true)->in_backward);
  EXPECT_DEATH(static_cast<void>(MakeAdam(spec)->AppendGather(graph_, BuiltinOps(), of_, numbers_)),
               "square of the whole gradient");
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
