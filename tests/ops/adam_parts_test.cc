// adam_gather and adam_apply: Adam for the parts of a batch.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/case_draw.h"
#include "tests/support/op_check.h"
#include "tests/support/op_inputs.h"
#include "tests/support/run_op.h"
#include "thimble/ops/adam_update/adam_update.h"

namespace thimble {
namespace {

using Floats = std::vector<float>;

OpCase AdamGatherCase(const Shape& shape, const Attributes& attributes = {}) {
  return {.op = "adam_gather",
          .inputs = {shape, shape, shape, Shape{1}, Shape{1}},
          .attributes = attributes,
          .positive_inputs = {2}};
}
OpCase WithAdamGatherFactor(OpCase op_case) {
  op_case.inputs.push_back(Shape{1});
  op_case.positive_inputs.push_back(kAdamGatherInputs.factor);
  return op_case;
}

OpCase AdamApplyCase(const Shape& shape, const Attributes& attributes = {}) {
  return {.op = "adam_apply",
          .inputs = {shape, shape, shape, Shape{1}, Shape{1}},
          .attributes = attributes,
          .positive_inputs = {2, 3}};
}

OpCase AdamPartAtRandom(OpCase op_case) {
  op_case.attributes.Set("stochastic", int64_t{1});
  op_case.attributes.Set("seed", int64_t{7});
  op_case.attributes.Set("stream", int64_t{3});
  return op_case;
}

}  // namespace

std::vector<OpCase> AdamPartsCases() {
  std::vector<OpCase> cases;
  for (const Shape& shape : {Shape{1}, Shape{0}, Shape{3, 3, 5, 33}, Shape{40001}}) {
    for (const int most_seen : {0, 3}) {
      OpCase gather = AdamGatherCase(shape, {{"beta2", 0.98}});
      gather.integer_bound = most_seen + 1;
      cases.push_back(gather);
      cases.push_back(AdamPartAtRandom(WithAdamGatherFactor(gather)));
    }
    cases.push_back(AdamApplyCase(shape, {{"weight_decay", 1e-2}}));
    cases.push_back(AdamPartAtRandom(AdamApplyCase(shape, {{"beta2", 0.98}})));
  }
  return cases;
}

OpCase Random_adam_gather(CaseDraw& draw) {
  OpCase op_case = AdamGatherCase(
      draw.AnyShape(),
      {{"beta1", 0.95 * draw.Fraction()}, {"beta2", 1 - std::exp2(-10 * draw.Fraction())}});
  op_case.integer_bound = draw.OneIn(2) ? 1 : 1'000'000;  // 1: seen is 0
  if (draw.OneIn(2)) op_case = AdamPartAtRandom(std::move(op_case));
  return draw.OneIn(2) ? op_case : WithAdamGatherFactor(std::move(op_case));
}

OpCase Random_adam_apply(CaseDraw& draw) {
  OpCase op_case = AdamApplyCase(draw.AnyShape(), {{"beta1", 0.95 * draw.Fraction()},
                                                   {"beta2", 1 - std::exp2(-10 * draw.Fraction())},
                                                   {"epsilon", std::exp2(-30 * draw.Fraction())},
                                                   {"weight_decay", 0.1 * draw.Fraction()}});
  op_case.integer_bound = draw.OneIn(2) ? 3 : 1'000'000;
  return draw.OneIn(2) ? op_case : AdamPartAtRandom(std::move(op_case));
}

namespace {

OpData PartFloats(Floats numbers) { return {std::move(numbers), {}}; }
OpData PartInteger(int32_t number) { return {{}, {number}}; }

const Attributes kPartBetas = {{"beta1", 0.75}, {"beta2", 0.9375}};

TEST(AdamParts, OnePartIsTheWholeUpdate) {
  constexpr int64_t kNumbers = 1001;
  const Shape shape{kNumbers};
  Attributes all = kPartBetas;
  all.Set("weight_decay", 0.01);
  const auto numbers = [](uint32_t stream, double scale, bool positive) {
    Floats result;
    for (const double normal : RandomNormals(/*seed=*/5, stream, size_t{kNumbers})) {
      result.push_back(static_cast<float>(scale * (positive ? normal * normal : normal)));
    }
    return PartFloats(std::move(result));
  };
  const OpData weight = numbers(0, 1, false);
  const OpData gradient = numbers(1, 0.1, false);
  const OpData moment = numbers(2, 0.01, false);
  const OpData root = numbers(3, 0.1, true);
  const OpData rate = PartFloats({0.01F});
  const OpData factor = PartFloats({0.25F});
  const OpCase whole{.op = "adam_update",
                     .inputs = {shape, shape, shape, shape, Shape{1}, Shape{1}, Shape{1}},
                     .attributes = all};
  constexpr size_t kKernel = 1;  // not the reference
  const auto expected =
      RunOp(whole, {weight, gradient, moment, root, rate, PartInteger(4), factor}, kKernel);
  const auto gathered =
      RunOp(WithAdamGatherFactor(AdamGatherCase(shape, kPartBetas)),
            {gradient, moment, root, PartInteger(0), PartInteger(4), factor}, kKernel);
  EXPECT_EQ(gathered[0].floats, expected[1].floats);
  EXPECT_EQ(gathered[1].floats, expected[2].floats);
  const auto applied = RunOp(AdamApplyCase(shape, all),
                             {weight, gathered[0], gathered[1], rate, PartInteger(4)}, kKernel);
  EXPECT_EQ(applied[0].floats, expected[0].floats);
}

// By hand: only the first part fades the old moments, and squares are added, not sums squared.
TEST(AdamParts, LaterPartsOnlyAdd) {
  const OpCase gather = AdamGatherCase(Shape{2}, kPartBetas);
  for (const auto& outputs :
       RunAllKernels(gather, {PartFloats({4, -8}), PartFloats({8, 2}), PartFloats({4, 0}),
                              PartInteger(0), PartInteger(9)})) {
    EXPECT_EQ(outputs[0].floats, (Floats{7, -0.5F}));
    EXPECT_EQ(outputs[1].floats, (Floats{4, 2}));
  }
  for (const auto& outputs :
       RunAllKernels(gather, {PartFloats({4, -8}), PartFloats({7, -0.5F}), PartFloats({0, 1.5F}),
                              PartInteger(10), PartInteger(9)})) {
    EXPECT_EQ(outputs[0].floats, (Floats{8, -2.5F}));
    EXPECT_EQ(outputs[1].floats, (Floats{1, 2.5F}));
  }
}

// Gradients that are not finite are dropped with their part; the moments fade once per update.
TEST(AdamParts, AFactorOfZeroDropsAPart) {
  const OpCase gather = WithAdamGatherFactor(AdamGatherCase(Shape{2}, kPartBetas));
  const auto run = [&](int32_t seen) {
    return RunAllKernels(gather,
                         {PartFloats({NAN, INFINITY}), PartFloats({8, -2}), PartFloats({4, 8}),
                          PartInteger(seen), PartInteger(9), PartFloats({0})});
  };
  for (const auto& outputs : run(0)) {
    EXPECT_EQ(outputs[0].floats, (Floats{6, -1.5F}));
    EXPECT_FLOAT_EQ(outputs[1].floats[0], 4 * std::sqrt(0.9375F));
    EXPECT_FLOAT_EQ(outputs[1].floats[1], 8 * std::sqrt(0.9375F));
  }
  for (const auto& outputs : run(5)) {
    EXPECT_EQ(outputs[0].floats, (Floats{8, -2}));
    EXPECT_EQ(outputs[1].floats, (Floats{4, 8}));
  }
}

TEST(AdamParts, PassesNanOfGradient) {
  for (const auto& outputs : RunAllKernels(
           AdamGatherCase(Shape{1}),
           {PartFloats({NAN}), PartFloats({0}), PartFloats({0}), PartInteger(3), PartInteger(0)})) {
    for (const OpData& output : outputs) EXPECT_TRUE(std::isnan(output.floats[0]));
  }
}

// Parts with equal gradients have smaller roots than their sum would have: the bound keeps the step
// to what Adam's could be.
TEST(AdamParts, TheBoundLimitsTheStepOfPartsThatAgree) {
  const AdamFactors factors({0.75, 0.9375, 1e-8, 0}, 1, 1'000'000);
  for (const auto& outputs : RunAllKernels(AdamApplyCase(Shape{1}, kPartBetas),
                                           {PartFloats({0}), PartFloats({100}), PartFloats({1}),
                                            PartFloats({1}), PartInteger(1'000'000)})) {
    EXPECT_FLOAT_EQ(outputs[0].floats[0], static_cast<float>(-factors.bound_slope));
  }
}

}  // namespace
}  // namespace thimble
