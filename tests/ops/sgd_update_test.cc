#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/support/case_draw.h"
#include "tests/support/op_check.h"
#include "tests/support/run_op.h"
#include "thimble/ops/sgd_update/sgd_tensors.h"

namespace thimble {
namespace {

using testing::HasSubstr;

Attributes Settings(double momentum, double weight_decay, int64_t nesterov) {
  return {{"momentum", momentum}, {"weight_decay", weight_decay}, {"nesterov", nesterov}};
}

OpCase SgdUpdateCase(const Shape& shape, const Attributes& attributes) {
  return {.op = "sgd_update",
          .inputs = {shape, shape, shape, Shape{1}},
          .attributes = attributes,
          .positive_inputs = {3}};
}

// With the optional inputs, and with rounding at random.
OpCase WithFactorInput(OpCase op_case) {
  op_case.inputs.push_back(Shape{1});
  op_case.inputs.push_back(Shape{1});
  op_case.positive_inputs.push_back(op_case.inputs.size() - 1);
  op_case.attributes.Set("stochastic", int64_t{1});
  op_case.attributes.Set("seed", int64_t{7});
  op_case.attributes.Set("stream", int64_t{3});
  return op_case;
}

OpCase GatherCase(const Shape& shape, double momentum, int integer_bound) {
  return {.op = "sgd_gather",
          .inputs = {shape, shape, shape, Shape{1}},
          .attributes = {{"momentum", momentum}, {"weight_decay", 1e-2}},
          .integer_bound = integer_bound};
}

OpCase ApplyCase(const Shape& shape) {
  return {.op = "sgd_apply", .inputs = {shape, shape, Shape{1}}, .positive_inputs = {2}};
}

OpCase ApplyFeedbackCase(const Shape& shape) {
  OpCase op_case = ApplyCase(shape);
  op_case.op = "sgd_apply_feedback";
  return op_case;
}

// Rounds at random and returns so little of the error that the reference, which rounds nothing,
// agrees. Returned errors themselves: sgd_feedback_test.cc.
OpCase WithFeedback(OpCase op_case) {
  op_case.inputs.push_back(Shape{1});
  op_case.attributes.Set("stochastic", int64_t{1});
  op_case.attributes.Set("feedback_rate", 1e12);
  return op_case;
}

OpCase MakePlainCase(const Shape& shape, double weight_decay) {
  return {.op = "sgd_update_plain",
          .inputs = {shape, shape, Shape{1}},
          .attributes = {{"weight_decay", weight_decay}},
          .positive_inputs = {2}};
}

}  // namespace

std::vector<OpCase> SgdUpdateCases() {
  std::vector<OpCase> cases;
  for (const Shape& shape : {Shape{1}, Shape{0}, Shape{3, 3, 5, 33}, Shape{40001}}) {
    cases.push_back(SgdUpdateCase(shape, Settings(0.9, 5e-4, 0)));
    cases.push_back(SgdUpdateCase(shape, Settings(0.9, 5e-4, 1)));
    cases.push_back(MakePlainCase(shape, 1e-2));
    cases.push_back(WithFactorInput(SgdUpdateCase(shape, Settings(0.9, 5e-4, 1))));
    cases.push_back(WithFactorInput(MakePlainCase(shape, 1e-2)));
    cases.push_back(GatherCase(shape, 0.9, /*integer_bound=*/1));  // the first part
    cases.push_back(WithFactorInput(GatherCase(shape, 0.9, /*integer_bound=*/10)));
    cases.push_back(ApplyCase(shape));
    cases.push_back(ApplyFeedbackCase(shape));
    cases.push_back(WithFeedback(ApplyFeedbackCase(shape)));
    cases.push_back(WithFeedback(SgdUpdateCase(shape, Settings(0.9, 5e-4, 1))));
  }
  cases.push_back(SgdUpdateCase(Shape{17}, Settings(0.0, 0.0, 0)));
  cases.push_back(MakePlainCase(Shape{17}, 0.0));
  return cases;
}

OpCase Random_sgd_update(CaseDraw& draw) {
  OpCase op_case = SgdUpdateCase(
      draw.AnyShape(), Settings(draw.Fraction(), 1e-2 * draw.Fraction(), draw.Between(0, 1)));
  return draw.OneIn(2) ? op_case : WithFeedback(std::move(op_case));
}

OpCase Random_sgd_gather(CaseDraw& draw) {
  OpCase op_case = GatherCase(draw.AnyShape(), draw.Fraction(), draw.OneIn(2) ? 1 : 9);
  return draw.OneIn(2) ? op_case : WithFactorInput(std::move(op_case));
}

OpCase Random_sgd_apply(CaseDraw& draw) { return ApplyCase(draw.AnyShape()); }

OpCase Random_sgd_apply_feedback(CaseDraw& draw) {
  OpCase op_case = ApplyFeedbackCase(draw.AnyShape());
  return draw.OneIn(2) ? op_case : WithFeedback(std::move(op_case));
}

OpCase Random_sgd_update_plain(CaseDraw& draw) {
  return MakePlainCase(draw.AnyShape(), draw.OneIn(3) ? 0.0 : 1e-2 * draw.Fraction());
}

namespace {

// weight 1, gradient 2, momentum 4, learning rate 0.5: exact in binary.
std::vector<OpData> RunOne(const Attributes& attributes) {
  return RunOp(SgdUpdateCase(Shape{1}, attributes), {{{1}, {}}, {{2}, {}}, {{4}, {}}, {{0.5}, {}}});
}

TEST(SgdUpdate, FollowsPyTorchFormula) {
  // d = 2 + 0.25 * 1; m = 0.5 * 4 + d = 4.25; w = 1 - 0.5 * 4.25.
  const auto outputs = RunOne(Settings(0.5, 0.25, 0));
  EXPECT_EQ(outputs[0].floats[0], -1.125F);
  EXPECT_EQ(outputs[1].floats[0], 4.25F);
}

TEST(SgdUpdate, NesterovLooksAhead) {
  // step = d + 0.5 * m = 2.25 + 2.125; the momentum is the same.
  const auto outputs = RunOne(Settings(0.5, 0.25, 1));
  EXPECT_EQ(outputs[0].floats[0], 1 - 0.5F * 4.375F);
  EXPECT_EQ(outputs[1].floats[0], 4.25F);
}

TEST(SgdUpdate, PassesNanOfGradient) {
  const auto outputs = RunOp(SgdUpdateCase(Shape{1}, Settings(0.9, 0, 0)),
                             {{{1}, {}}, {{NAN}, {}}, {{0}, {}}, {{0.1F}, {}}});
  EXPECT_TRUE(std::isnan(outputs[0].floats[0]));
  EXPECT_TRUE(std::isnan(outputs[1].floats[0]));
}

TEST(SgdUpdatePlain, EqualsZeroMomentumBitForBit) {
  const std::vector<float> weight{0.1F, -3.7F, 1e-9F};
  const std::vector<float> gradient{1.1F, 0.3F, -2e5F};
  const auto with = RunOp(SgdUpdateCase(Shape{3}, Settings(0, 1e-2, 0)),
                          {{weight, {}}, {gradient, {}}, {{0, 0, 0}, {}}, {{0.1F}, {}}});
  const auto plain =
      RunOp(MakePlainCase(Shape{3}, 1e-2), {{weight, {}}, {gradient, {}}, {{0.1F}, {}}});
  EXPECT_EQ(with[0].floats, plain[0].floats);
}

TEST(SgdUpdate, RejectsWrongShapes) {
  OpCase op_case = SgdUpdateCase(Shape{3}, {});
  op_case.inputs[1] = Shape{4};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'gradient' has shape (4), expected (3)"));
  op_case = SgdUpdateCase(Shape{3}, {});
  op_case.inputs[2] = Shape{3, 1};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'momentum'"));
  op_case = SgdUpdateCase(Shape{3}, {});
  op_case.inputs[3] = Shape{3};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'learning_rate' has shape (3), expected (1)"));
}

TEST(SgdUpdatePlain, RejectsWrongShapes) {
  OpCase op_case = MakePlainCase(Shape{3}, 0);
  op_case.inputs[1] = Shape{};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'gradient'"));
  op_case = MakePlainCase(Shape{3}, 0);
  op_case.inputs[2] = Shape{2};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'learning_rate'"));
}

OpData FloatInput(std::vector<float> numbers) { return {std::move(numbers), {}}; }
OpData Integer(int32_t number) { return {{}, {number}}; }

TEST(SgdUpdate, AFactorUndoesTheScaleOfTheLoss) {
  const OpCase plain = SgdUpdateCase(Shape{1}, Settings(0.5, 0.25, 0));
  OpCase scaled = plain;
  scaled.inputs = {Shape{1}, Shape{1}, Shape{1}, Shape{1}, Shape{1}, Shape{1}};
  const auto expected = RunOne(plain.attributes);
  const auto actual = RunOp(scaled, {FloatInput({1}), FloatInput({2 * 128}), FloatInput({4}),
                                     FloatInput({0.5}), Integer(0), FloatInput({1.0F / 128})});
  EXPECT_EQ(actual[0].floats, expected[0].floats);
  EXPECT_EQ(actual[1].floats, expected[1].floats);
}

TEST(SgdUpdate, AFactorOfZeroSkipsTheUpdate) {
  OpCase op_case = SgdUpdateCase(Shape{1}, Settings(0.5, 0.25, 0));
  op_case.inputs = {Shape{1}, Shape{1}, Shape{1}, Shape{1}, Shape{1}, Shape{1}};
  const auto outputs = RunOp(op_case, {FloatInput({1}), FloatInput({NAN}), FloatInput({4}),
                                       FloatInput({0.5}), Integer(0), FloatInput({0})});
  EXPECT_EQ(outputs[0].floats[0], 1);
  EXPECT_EQ(outputs[1].floats[0], 4);
}

// Two parts and the update give what sgd_update gives for the sum of their gradients.
TEST(SgdGather, PartsAddUpToTheWholeUpdate) {
  const OpCase gather = GatherCase(Shape{1}, 0.5, 1);
  const auto first =
      RunOp(gather, {FloatInput({1}), FloatInput({2}), FloatInput({4}), Integer(0)})[0].floats;
  const auto both =
      RunOp(gather, {FloatInput({1}), FloatInput({3}), FloatInput(first), Integer(10)})[0];
  const auto applied = RunOp(ApplyCase(Shape{1}), {FloatInput({1}), both, FloatInput({0.5})});
  const auto whole =
      RunOp(SgdUpdateCase(Shape{1}, Settings(0.5, 1e-2, 0)),
            {FloatInput({1}), FloatInput({2 + 3}), FloatInput({4}), FloatInput({0.5})});
  EXPECT_FLOAT_EQ(both.floats[0], whole[1].floats[0]);
  EXPECT_FLOAT_EQ(applied[0].floats[0], whole[0].floats[0]);
}

TEST(SgdGather, AFactorOfZeroLeavesOutTheGradientOnly) {
  OpCase gather = GatherCase(Shape{1}, 0.5, 1);
  gather.inputs.insert(gather.inputs.end(), {Shape{1}, Shape{1}});
  const auto run = [&](int32_t seen) {
    return RunOp(gather, {FloatInput({1}), FloatInput({INFINITY}), FloatInput({4}), Integer(seen),
                          Integer(0), FloatInput({0})})[0]
        .floats[0];
  };
  EXPECT_FLOAT_EQ(run(0), 0.5F * 4 + 1e-2F);
  EXPECT_EQ(run(10), 4);
}

TEST(SgdUpdate, StochasticRoundingNeedsTheNumberOfTheUpdate) {
  OpCase op_case = SgdUpdateCase(Shape{3}, {});
  op_case.attributes.Set("stochastic", int64_t{1});
  EXPECT_THAT(ShapeError(op_case), HasSubstr("needs the number of the update"));
}

TEST(SgdTensors, EachElementHasOneBlock) {
  const int sizes[] = {
      1, 0, kUpdateBlockElements, kUpdateBlockElements + 1, 0, 5 * kUpdateBlockElements, 3};
  SgdTensors list;
  for (int size : sizes) list.Add({.elements = size});
  EXPECT_EQ(list.num_tensors, 5);
  std::vector<int> covered(static_cast<size_t>(list.num_tensors), 0);
  for (int block = 0; block < list.num_blocks; ++block) {
    const int index = list.Find(block);
    const SgdTensor& tensor = list.tensors[index];
    const int first = (block - tensor.first_block) * kUpdateBlockElements;
    EXPECT_EQ(first, covered[static_cast<size_t>(index)]);
    covered[static_cast<size_t>(index)] = std::min(tensor.elements, first + kUpdateBlockElements);
  }
  for (int i = 0; i < list.num_tensors; ++i) {
    EXPECT_EQ(covered[static_cast<size_t>(i)], list.tensors[i].elements);
  }
  list.Clear();
  EXPECT_EQ(list.num_blocks, 0);
}

}  // namespace
}  // namespace thimble
