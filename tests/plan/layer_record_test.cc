#include "thimble/plan/layer_record.h"

#include <gtest/gtest.h>

#include "tests/support/model_graphs.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

class LayerRecordTest : public testing::Test {
 protected:
  PlanRecord plan_ = RecordOf(PlanGraph(TrainingGraph("wrn-10-1", 3)), "train 3", BuiltinOps());
  std::vector<LayerRecord> layers_ = LayersOf(plan_);
};

TEST_F(LayerRecordTest, ComeInTheOrderOfTheNetwork) {
  ASSERT_GT(layers_.size(), 10U);
  EXPECT_EQ(layers_[0].name, "normalize");
  EXPECT_EQ(layers_[1].name, "conv1");
  EXPECT_EQ(layers_[2].name, "block1.layer.0.bn1");
  EXPECT_EQ(layers_.back().name, "");
}

TEST_F(LayerRecordTest, AddUpToThePlan) {
  CategoryBytes bytes{};
  int64_t forward = 0;
  int64_t step = 0;
  for (const LayerRecord& layer : layers_) {
    for (size_t i = 0; i < kNumCategories; ++i) bytes[i] += layer.at_peak[i];
    forward += layer.forward_flops;
    step += layer.step_flops;
  }
  EXPECT_EQ(bytes, Account(plan_).at_peak);
  EXPECT_EQ(forward, plan_.forward_flops);
  EXPECT_EQ(step, plan_.step_flops);
}

TEST_F(LayerRecordTest, HaveTheirOwnWeights) {
  for (const LayerRecord& layer : layers_) {
    if (layer.name != "conv1") continue;
    EXPECT_EQ(layer.at_peak[static_cast<size_t>(Category::kModel)], 16U * 27 * 4);
    EXPECT_EQ(layer.at_peak[static_cast<size_t>(Category::kOptimizer)], 16U * 27 * 4);
    EXPECT_EQ(layer.forward_flops, 2 * 3 * 32 * 32 * 16 * 27);
  }
}

TEST_F(LayerRecordTest, OfAProgramHaveTheArithmeticOfAStep) {
  ProgramRecord program;
  program.plans = {plan_, plan_, plan_};
  program.plans[0].runs_per_step = 3;
  program.plans[1].runs_per_step = 1;
  program.plans[2].runs_per_step = 0;
  const std::vector<LayerRecord> layers = LayersOf(program);
  ASSERT_EQ(layers.size(), layers_.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    EXPECT_EQ(layers[i].name, layers_[i].name);
    EXPECT_EQ(layers[i].at_peak, layers_[i].at_peak);
    EXPECT_EQ(layers[i].forward_flops, 4 * layers_[i].forward_flops);
    EXPECT_EQ(layers[i].step_flops, 4 * layers_[i].step_flops);
  }
}

}  // namespace
}  // namespace thimble
