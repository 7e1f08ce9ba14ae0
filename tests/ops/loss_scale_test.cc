#include "thimble/ops/loss_scale/loss_scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/case_draw.h"
#include "tests/support/op_check.h"
#include "tests/support/run_op.h"

namespace thimble {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Shape kStateShape{kNumScaleEntries};

OpCase CheckCase(std::vector<Shape> gradients, double clip) {
  gradients.insert(gradients.begin(), kStateShape);
  return {.op = "check_gradients",
          .inputs = std::move(gradients),
          .attributes = {{"clip", clip}},
          .positive_inputs = {0}};
}

OpCase AdjustCase(int64_t interval) {
  return {.op = "adjust_loss_scale",
          .inputs = {kStateShape},
          .attributes = {{"interval", interval}, {"floor", 0.5}, {"ceiling", 1024.0}}};
}

OpCase ScaleCase() {
  return {.op = "scale_loss", .inputs = {Shape{1}, kStateShape}, .positive_inputs = {0, 1}};
}

}  // namespace

std::vector<OpCase> LossScaleCases() {
  return {ScaleCase(),
          AdjustCase(0),
          AdjustCase(10),
          CheckCase({Shape{1}}, 0),
          CheckCase({Shape{0}}, 0.25),
          CheckCase({Shape{3, 5}, Shape{0}, Shape{40001}, Shape{7}}, 0),
          CheckCase({Shape{3, 5}, Shape{20000}}, 0.25)};
}

OpCase Random_scale_loss(CaseDraw& /*draw*/) { return ScaleCase(); }
OpCase Random_adjust_loss_scale(CaseDraw& draw) { return AdjustCase(draw.Between(0, 3)); }
OpCase Random_check_gradients(CaseDraw& draw) {
  std::vector<Shape> gradients;
  const int64_t count = draw.Between(1, 5);
  for (int64_t i = 0; i < count; ++i) gradients.push_back(draw.AnyShape());
  return CheckCase(std::move(gradients), draw.OneIn(2) ? 0.0 : draw.Fraction());
}

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Checked {
  float factor;
  std::vector<float> state;
};

Checked Check(const std::vector<float>& gradient, float scale, double clip = 0) {
  const auto outputs = RunOp(CheckCase({Shape{static_cast<int64_t>(gradient.size())}}, clip),
                             {{{scale, 5, 6, 0}, {}}, {gradient, {}}});
  return {outputs[0].floats[0], outputs[1].floats};
}

TEST(CheckGradients, TheFactorUndoesTheScale) {
  const Checked checked = Check({3, -4}, 8);
  EXPECT_EQ(checked.factor, 0.125F);
  EXPECT_THAT(checked.state, ElementsAre(8, 5, 6, 0));
}

TEST(CheckGradients, NumbersThatAreNotFiniteGiveZeroAndAreNoted) {
  for (const float bad : {NAN, kInfinity, -kInfinity}) {
    const Checked checked = Check({1, bad, 2}, 8);
    EXPECT_EQ(checked.factor, 0) << bad;
    EXPECT_THAT(checked.state, ElementsAre(8, 5, 6, 1)) << bad;
  }
  EXPECT_GT(Check({3e38F, 3e38F}, 1).factor, 0) << "their squares are larger than any float";
}

TEST(CheckGradients, ClipsTheNormOfTheTrueGradient) {
  // The norm is 5 times the scale.
  EXPECT_FLOAT_EQ(Check({3 * 8, -4 * 8}, 8, /*clip=*/1).factor, 1.0F / 8 / 5);
  EXPECT_EQ(Check({3 * 8, -4 * 8}, 8, /*clip=*/6).factor, 1.0F / 8);
}

std::vector<float> Adjust(const std::vector<float>& state, int64_t interval) {
  return RunOp(AdjustCase(interval), {{state, {}}})[0].floats;
}

TEST(AdjustLossScale, GrowsAfterTheInterval) {
  EXPECT_THAT(Adjust({8, 0, 2, 0}, 2), ElementsAre(8, 1, 2, 0));
  EXPECT_THAT(Adjust({8, 1, 2, 0}, 2), ElementsAre(16, 0, 2, 0));
  EXPECT_THAT(Adjust({1024, 1, 2, 0}, 2), ElementsAre(1024, 0, 2, 0)) << "the ceiling";
}

TEST(AdjustLossScale, ShrinksAndCountsAtAnOverflow) {
  EXPECT_THAT(Adjust({8, 1, 2, 3}, 2), ElementsAre(4, 0, 3, 0));
  EXPECT_THAT(Adjust({0.75, 1, 2, 1}, 2), ElementsAre(0.5, 0, 3, 0)) << "the floor";
}

TEST(AdjustLossScale, AnIntervalOfZeroKeepsTheScale) {
  EXPECT_THAT(Adjust({8, 1, 2, 0}, 0), ElementsAre(8, 2, 2, 0));
  EXPECT_THAT(Adjust({8, 1, 2, 1}, 0), ElementsAre(8, 0, 3, 0));
}

TEST(ScaleLoss, MultipliesTheWeightByTheScale) {
  EXPECT_EQ(RunOp(ScaleCase(), {{{0.25}, {}}, {{8, 1, 2, 3}, {}}})[0].floats[0], 2);
}

TEST(LossScale, RejectsWrongCalls) {
  OpCase op_case = CheckCase({Shape{3}}, -1);
  EXPECT_THAT(ShapeError(op_case), HasSubstr("clip is -1, expected at least 0"));
  op_case = CheckCase({Shape{3}}, 0);
  op_case.inputs[0] = Shape{1};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'loss_scale' has shape (1), expected (4)"));
  op_case = AdjustCase(-1);
  EXPECT_THAT(ShapeError(op_case), HasSubstr("interval"));
  op_case = AdjustCase(1);
  op_case.attributes.Set("factor", 1.0);
  EXPECT_THAT(ShapeError(op_case), HasSubstr("a factor above 1"));
  op_case = ScaleCase();
  op_case.inputs[0] = Shape{2};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'weight'"));
}

}  // namespace
}  // namespace thimble
