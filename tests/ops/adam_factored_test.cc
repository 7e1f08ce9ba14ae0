// Adam with means of rows and columns for its second moment.
#include "thimble/ops/adam_update/adam_factored.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/case_draw.h"
#include "tests/support/op_check.h"
#include "tests/support/op_inputs.h"
#include "tests/support/run_op.h"

namespace thimble {
namespace {

using Floats = std::vector<float>;

// Numbers that are summed for a mean.
double MeanSize(const AdamMatrix& matrix) {
  return static_cast<double>(matrix.rows + matrix.columns);
}

OpCase FactoredUpdateCase(const Shape& shape, const Attributes& attributes = {}) {
  const AdamMatrix matrix(shape);
  return {.op = "adam_factored_update",
          .inputs = {shape, shape, shape, Shape{matrix.rows}, Shape{matrix.columns}, Shape{1},
                     Shape{1}},
          .attributes = attributes,
          .positive_inputs = {3, 4, 5},
          .shared_sum_size = MeanSize(matrix)};
}
OpCase FactoredGatherCase(const Shape& shape, const Attributes& attributes = {}) {
  const AdamMatrix matrix(shape);
  return {.op = "adam_factored_gather",
          .inputs = {shape, shape, Shape{matrix.rows}, Shape{matrix.columns}, Shape{1}, Shape{1}},
          .attributes = attributes,
          .positive_inputs = {2, 3},
          .shared_sum_size = MeanSize(matrix)};
}
OpCase FactoredApplyCase(const Shape& shape, const Attributes& attributes = {}) {
  const AdamMatrix matrix(shape);
  return {.op = "adam_factored_apply",
          .inputs = {shape, shape, Shape{matrix.rows}, Shape{matrix.columns}, Shape{1}, Shape{1}},
          .attributes = attributes,
          .positive_inputs = {2, 3, 4},
          .shared_sum_size = MeanSize(matrix)};
}

OpCase WithFactoredFactor(OpCase op_case) {
  op_case.positive_inputs.push_back(op_case.inputs.size());
  op_case.inputs.push_back(Shape{1});
  return op_case;
}
OpCase FactoredAtRandom(OpCase op_case) {
  op_case.attributes.Set("stochastic", int64_t{1});
  op_case.attributes.Set("seed", int64_t{7});
  op_case.attributes.Set("stream", int64_t{3});
  return op_case;
}

}  // namespace

std::vector<OpCase> AdamFactoredCases() {
  std::vector<OpCase> cases;
  // Fewer rows than groups of rows; rows longer than a piece; neither a multiple of a vector.
  for (const Shape& shape : {Shape{1, 1}, Shape{0, 4}, Shape{3, 3, 5, 33}, Shape{37, 1100}}) {
    cases.push_back(FactoredUpdateCase(shape, {{"weight_decay", 1e-2}}));
    cases.push_back(FactoredAtRandom(WithFactoredFactor(FactoredUpdateCase(shape))));
    for (const int bound : {1, 4}) {  // seen is 0, or may not be
      OpCase gather = FactoredGatherCase(shape, {{"beta2", 0.98}});
      gather.integer_bound = bound;
      cases.push_back(gather);
      cases.push_back(FactoredAtRandom(WithFactoredFactor(gather)));
    }
    cases.push_back(FactoredApplyCase(shape, {{"weight_decay", 1e-2}}));
    cases.push_back(FactoredAtRandom(FactoredApplyCase(shape, {{"beta2", 0.98}})));
  }
  return cases;
}

namespace {

Shape RandomMatrix(CaseDraw& draw) {
  return {draw.Between(1, 70), draw.OneIn(4) ? draw.Between(1, 2500) : draw.Between(1, 90)};
}
Attributes RandomBetas(CaseDraw& draw) {
  return {{"beta1", 0.95 * draw.Fraction()}, {"beta2", 1 - std::exp2(-10 * draw.Fraction())}};
}
Attributes RandomSteps(CaseDraw& draw) {
  Attributes attributes = RandomBetas(draw);
  attributes.Set("epsilon", std::exp2(-30 * draw.Fraction()));
  attributes.Set("weight_decay", 0.1 * draw.Fraction());
  return attributes;
}
OpCase MaybeAtRandom(CaseDraw& draw, OpCase op_case) {
  return draw.OneIn(2) ? FactoredAtRandom(std::move(op_case)) : op_case;
}

}  // namespace

OpCase Random_adam_factored_update(CaseDraw& draw) {
  OpCase op_case = FactoredUpdateCase(RandomMatrix(draw), RandomSteps(draw));
  op_case.integer_bound = draw.OneIn(2) ? 3 : 1'000'000;
  if (draw.OneIn(2)) op_case = WithFactoredFactor(std::move(op_case));
  return MaybeAtRandom(draw, std::move(op_case));
}
OpCase Random_adam_factored_gather(CaseDraw& draw) {
  OpCase op_case = FactoredGatherCase(RandomMatrix(draw), RandomBetas(draw));
  op_case.integer_bound = draw.OneIn(2) ? 1 : 1'000'000;  // 1: seen is 0
  if (draw.OneIn(2)) op_case = WithFactoredFactor(std::move(op_case));
  return MaybeAtRandom(draw, std::move(op_case));
}
OpCase Random_adam_factored_apply(CaseDraw& draw) {
  OpCase op_case = FactoredApplyCase(RandomMatrix(draw), RandomSteps(draw));
  op_case.integer_bound = draw.OneIn(2) ? 3 : 1'000'000;
  return MaybeAtRandom(draw, std::move(op_case));
}

namespace {

OpData FactoredFloats(Floats numbers) { return {std::move(numbers), {}}; }
OpData FactoredInteger(int32_t number) { return {{}, {number}}; }

const Attributes kFactoredBetas = {{"beta1", 0.75}, {"beta2", 0.9375}, {"epsilon", 1e-12}};

// By hand.
TEST(AdamFactored, KeepsMeansOfSquares) {
  for (const auto& outputs : RunAllKernels(
           FactoredGatherCase(Shape{2, 2}, {{"beta1", 0.75}, {"beta2", 0.9375}}),
           {FactoredFloats({4, 8, -12, 0}), FactoredFloats({0, 0, 4, 4}), FactoredFloats({16, 32}),
            FactoredFloats({0, 16}), FactoredInteger(0), FactoredInteger(5)})) {
    EXPECT_EQ(outputs[0].floats, (Floats{1, 2, 0, 3}));
    EXPECT_EQ(outputs[1].floats, (Floats{15 + 40 / 16.0F, 30 + 72 / 16.0F}));
    EXPECT_EQ(outputs[2].floats, (Floats{80 / 16.0F, 15 + 32 / 16.0F}));
  }
}

// If all rows are proportional to each other, the product of the means is the second moment.
TEST(AdamFactored, IsAdamWhereRowsAreProportional) {
  const Shape shape{3, 4};
  const Floats rows = {1, 0.5F, 4};
  const Floats columns = {2, 1, 0.25F, 8};
  Floats gradient, zeros(12), weights(12, 1);
  for (const float row : rows) {
    for (const float column : columns) gradient.push_back(row * column);
  }
  const OpData rate = FactoredFloats({0.125F});
  const OpCase whole{.op = "adam_update",
                     .inputs = {shape, shape, shape, shape, Shape{1}, Shape{1}},
                     .attributes = kFactoredBetas};
  const auto expected =
      RunOp(whole, {FactoredFloats(weights), FactoredFloats(gradient), FactoredFloats(zeros),
                    FactoredFloats(zeros), rate, FactoredInteger(3)});
  for (const auto& outputs : RunAllKernels(
           FactoredUpdateCase(shape, kFactoredBetas),
           {FactoredFloats(weights), FactoredFloats(gradient), FactoredFloats(zeros),
            FactoredFloats({0, 0, 0}), FactoredFloats({0, 0, 0, 0}), rate, FactoredInteger(3)})) {
    for (size_t i = 0; i < 12; ++i) {
      EXPECT_NEAR(outputs[0].floats[i], expected[0].floats[i], 1e-6);
      EXPECT_FLOAT_EQ(outputs[1].floats[i], expected[1].floats[i]);
    }
  }
}

TEST(AdamFactored, OnePartIsTheWholeUpdate) {
  const Shape shape{21, 67};
  const AdamMatrix matrix(shape);
  uint32_t stream = 0;
  const auto numbers = [&](int64_t count, double scale, bool positive) {
    Floats result;
    for (const double normal : RandomNormals(/*seed=*/5, ++stream, static_cast<size_t>(count))) {
      result.push_back(static_cast<float>(scale * (positive ? normal * normal : normal)));
    }
    return FactoredFloats(std::move(result));
  };
  Attributes steps = kFactoredBetas;
  steps.Set("weight_decay", 0.01);
  const OpData weight = numbers(shape.elements(), 1, false);
  const OpData gradient = numbers(shape.elements(), 0.1, false);
  const OpData moment = numbers(shape.elements(), 0.01, false);
  const OpData rows = numbers(matrix.rows, 0.1, true);
  const OpData columns = numbers(matrix.columns, 0.1, true);
  const OpData rate = FactoredFloats({0.01F});
  const OpData factor = FactoredFloats({0.25F});
  constexpr size_t kKernel = 1;  // not the reference
  const auto expected =
      RunOp(WithFactoredFactor(FactoredUpdateCase(shape, steps)),
            {weight, gradient, moment, rows, columns, rate, FactoredInteger(4), factor}, kKernel);
  const auto gathered = RunOp(
      WithFactoredFactor(FactoredGatherCase(shape, {{"beta1", 0.75}, {"beta2", 0.9375}})),
      {gradient, moment, rows, columns, FactoredInteger(0), FactoredInteger(4), factor}, kKernel);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(gathered[i].floats, expected[i + 1].floats);
  const auto applied =
      RunOp(FactoredApplyCase(shape, steps),
            {weight, gathered[0], gathered[1], gathered[2], rate, FactoredInteger(4)}, kKernel);
  EXPECT_EQ(applied[0].floats, expected[0].floats);
}

TEST(AdamFactored, AFactorOfZeroSkipsTheUpdate) {
  for (const auto& outputs :
       RunAllKernels(WithFactoredFactor(FactoredUpdateCase(Shape{1, 2}, {{"weight_decay", 0.5}})),
                     {FactoredFloats({1, 2}), FactoredFloats({NAN, INFINITY}),
                      FactoredFloats({3, -4}), FactoredFloats({5}), FactoredFloats({6, 7}),
                      FactoredFloats({0.5F}), FactoredInteger(0), FactoredFloats({0})})) {
    EXPECT_EQ(outputs[0].floats, (Floats{1, 2}));
    EXPECT_EQ(outputs[1].floats, (Floats{3, -4}));
    EXPECT_EQ(outputs[2].floats, (Floats{5}));
    EXPECT_EQ(outputs[3].floats, (Floats{6, 7}));
  }
}

// The first part fades what is kept, others change nothing.
TEST(AdamFactored, AFactorOfZeroDropsAPart) {
  const OpCase gather =
      WithFactoredFactor(FactoredGatherCase(Shape{1, 2}, {{"beta1", 0.75}, {"beta2", 0.9375}}));
  for (const int32_t seen : {0, 9}) {
    for (const auto& outputs :
         RunAllKernels(gather, {FactoredFloats({NAN, INFINITY}), FactoredFloats({8, -4}),
                                FactoredFloats({16}), FactoredFloats({32, 0}),
                                FactoredInteger(seen), FactoredInteger(2), FactoredFloats({0})})) {
      EXPECT_EQ(outputs[0].floats, (seen == 0 ? Floats{6, -3} : Floats{8, -4}));
      EXPECT_EQ(outputs[1].floats, (seen == 0 ? Floats{15} : Floats{16}));
      EXPECT_EQ(outputs[2].floats, (seen == 0 ? Floats{30, 0} : Floats{32, 0}));
    }
  }
}

// A row of an embedding whose word never occurs.
TEST(AdamFactored, RowsWithoutGradientsStay) {
  for (const auto& outputs :
       RunAllKernels(FactoredUpdateCase(Shape{2, 2}),
                     {FactoredFloats({1, 2, 3, 4}), FactoredFloats({0, 0, 1, 1}),
                      FactoredFloats({0, 0, 0, 0}), FactoredFloats({0, 0}), FactoredFloats({0, 0}),
                      FactoredFloats({0.5F}), FactoredInteger(0)})) {
    EXPECT_EQ(outputs[0].floats[0], 1);
    EXPECT_EQ(outputs[0].floats[1], 2);
    EXPECT_FLOAT_EQ(outputs[0].floats[2], 2.5F);
  }
}

TEST(AdamFactored, PassesNanOfGradient) {
  for (const auto& outputs : RunAllKernels(
           FactoredUpdateCase(Shape{1, 1}),
           {FactoredFloats({1}), FactoredFloats({NAN}), FactoredFloats({0}), FactoredFloats({0}),
            FactoredFloats({0}), FactoredFloats({0.1F}), FactoredInteger(0)})) {
    for (const OpData& output : outputs) EXPECT_TRUE(std::isnan(output.floats[0]));
  }
}

TEST(AdamFactored, ExpectsTwoDimensions) {
  OpCase op_case{.op = "adam_factored_apply",
                 .inputs = {Shape{6}, Shape{6}, Shape{6}, Shape{1}, Shape{1}, Shape{1}},
                 .attributes = {}};
  EXPECT_THAT(ShapeError(op_case), testing::HasSubstr("at least two dimensions"));
}

}  // namespace
}  // namespace thimble
