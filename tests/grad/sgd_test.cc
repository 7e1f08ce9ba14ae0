#include "thimble/grad/sgd.h"

#include <gtest/gtest.h>

#include "thimble/graph/verify_graph.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

// A parameter with a gradient and all numbers that updates may read.
class SgdTest : public testing::Test {
 protected:
  SgdTest() {
    of_.parameter = graph_.AddValue({"w", {3}, DType::kF32, Role::kParameter, {}, {}});
    of_.gradient = graph_.AddValue({"dw", {3}, DType::kF32, Role::kInput, {}, {}});
    of_.index = 5;
    numbers_.learning_rate = Add("learning_rate", DType::kF32);
    numbers_.seen = Add("seen", DType::kI32);
    numbers_.update = Add("update", DType::kI32);
    numbers_.gradient_factor = Add("factor", DType::kF32);
  }
  ValueId Add(const char* name, DType dtype) {
    return graph_.AddValue({name, {1}, dtype, Role::kInput, {}, {}});
  }
  const Node& Last() {
    const auto verified = VerifyGraph(graph_, BuiltinOps());
    EXPECT_TRUE(verified.ok()) << verified.error().message;
    return graph_.nodes.back();
  }

  Graph graph_;
  ParameterGradient of_;
  UpdateNumbers numbers_;
};

TEST_F(SgdTest, ReadsTheOptionalNumbersThatAreThere) {
  ASSERT_TRUE(MakeSgd({})->AppendUpdate(graph_, BuiltinOps(), of_, numbers_).ok());
  EXPECT_EQ(Last().op, "sgd_update");
  EXPECT_EQ(Last().inputs.size(), 6U);
  EXPECT_EQ(Last().inputs[5], numbers_.gradient_factor);
  EXPECT_EQ(Last().attributes.Int("stochastic"), 0);
}

TEST_F(SgdTest, RandomRoundingHasTheStreamOfTheParameter) {
  numbers_.gradient_factor = {};
  const auto sgd = MakeSgd({.stochastic_rounding = true, .seed = 9});
  ASSERT_TRUE(sgd->AppendUpdate(graph_, BuiltinOps(), of_, numbers_).ok());
  EXPECT_EQ(Last().inputs.size(), 5U);
  EXPECT_EQ(Last().attributes.Int("stochastic"), 1);
  EXPECT_EQ(Last().attributes.Int("seed"), 9);
  EXPECT_EQ(Last().attributes.Int("stream"), 5);
}

TEST_F(SgdTest, GathersIntoMomentumAndApplies) {
  const auto sgd = MakeSgd({});
  EXPECT_EQ(sgd->WhyNotByParts(), "");
  ASSERT_TRUE(sgd->AppendGather(graph_, BuiltinOps(), of_, numbers_).ok());
  EXPECT_EQ(Last().op, "sgd_gather");
  EXPECT_EQ(graph_.value(graph_.carries.back().from).name, "momentum.w");
  Graph update;
  of_.parameter = update.AddValue({"w", {3}, DType::kF32, Role::kParameter, {}, {}});
  numbers_ = {};
  numbers_.learning_rate =
      update.AddValue({"learning_rate", {1}, DType::kF32, Role::kInput, {}, {}});
  ASSERT_TRUE(sgd->AppendApply(update, BuiltinOps(), of_, numbers_).ok());
  EXPECT_EQ(update.nodes.back().op, "sgd_apply");
  EXPECT_EQ(update.carries.size(), 1U) << "only the parameter changes";
}

TEST_F(SgdTest, ErrorFeedbackFollowsTheLargestLearningRate) {
  const auto sgd = MakeSgd({.error_feedback = true, .largest_learning_rate = 0.1});
  ASSERT_TRUE(sgd->AppendUpdate(graph_, BuiltinOps(), of_, numbers_).ok());
  EXPECT_DOUBLE_EQ(Last().attributes.Float("feedback_rate"), 0.1 / 128);
}

TEST_F(SgdTest, ErrorFeedbackOfPartsChangesTheMomentumTwice) {
  const auto sgd = MakeSgd({.error_feedback = true, .largest_learning_rate = 0.1});
  ASSERT_TRUE(sgd->AppendApply(graph_, BuiltinOps(), of_, numbers_).ok());
  EXPECT_EQ(Last().op, "sgd_apply_feedback");
  EXPECT_DOUBLE_EQ(Last().attributes.Float("feedback_rate"), 0.1 / 128);
  ASSERT_EQ(graph_.carries.size(), 2U);
  EXPECT_EQ(graph_.value(graph_.carries[1].from).name, "momentum.w");
}

TEST_F(SgdTest, WithoutMomentumErrorsAreLost) {
  const auto sgd = MakeSgd({.optimizer = {.momentum = 0}, .error_feedback = true});
  ASSERT_TRUE(sgd->AppendUpdate(graph_, BuiltinOps(), of_, numbers_).ok());
  EXPECT_EQ(Last().op, "sgd_update_plain");
}

TEST_F(SgdTest, SaysWhyPartsCannotBeGathered) {
  EXPECT_NE(MakeSgd({.optimizer = {.nesterov = true}})->WhyNotByParts(), "");
  EXPECT_NE(MakeSgd({.optimizer = {.momentum = 0}})->WhyNotByParts(), "");
}

}  // namespace
}  // namespace thimble
