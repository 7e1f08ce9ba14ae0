// Weight gradients that are used at once. packed_update_test.cc compares the kernels with the two
// ops one after the other, bit for bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/case_draw.h"
#include "tests/support/op_check.h"
#include "tests/support/run_op.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

using testing::HasSubstr;

struct UpdatedConvolution {
  int64_t batch, height, width, channels, out_channels, kernel, stride, padding;

  Shape x() const { return {batch, height, width, channels}; }
  Shape w() const { return {out_channels, kernel, kernel, channels}; }
  Shape dy() const {
    return {batch, (height + 2 * padding - kernel) / stride + 1,
            (width + 2 * padding - kernel) / stride + 1, out_channels};
  }
  // With `arrays` arrays like w, then `scalars` single numbers.
  OpCase Case(const std::string& op, size_t arrays, size_t scalars, Attributes attributes) const {
    attributes.Set("stride", stride);
    attributes.Set("padding", padding);
    attributes.Set("kernel_height", kernel);
    attributes.Set("kernel_width", kernel);
    OpCase op_case;
    op_case.op = op;
    op_case.inputs = {x(), dy()};
    op_case.inputs.insert(op_case.inputs.end(), arrays, w());
    op_case.inputs.insert(op_case.inputs.end(), scalars, Shape{1});
    op_case.attributes = std::move(attributes);
    return op_case;
  }
  OpCase Accumulate(bool is_first) const {
    OpCase op_case = Case("conv2d_accumulate", 1, 1, {});
    op_case.integer_bound = is_first ? 1 : 1 << 20;
    return op_case;
  }
  OpCase Gather(bool is_first) const {
    OpCase op_case = Case("conv2d_sgd_gather", 2, 1, {{"momentum", 0.9}, {"weight_decay", 1e-2}});
    op_case.integer_bound = is_first ? 1 : 9;
    return op_case;
  }
  OpCase Update(int64_t nesterov) const {
    OpCase op_case = Case("conv2d_sgd_update", 2, 1,
                          {{"momentum", 0.9}, {"weight_decay", 5e-4}, {"nesterov", nesterov}});
    op_case.positive_inputs = {4};
    return op_case;
  }
  OpCase UpdatePlain() const {
    OpCase op_case = Case("conv2d_sgd_update_plain", 1, 1, {{"weight_decay", 1e-2}});
    op_case.positive_inputs = {3};
    return op_case;
  }
};

// With the optional inputs, and with rounding at random.
OpCase WithUpdateAndFactor(OpCase op_case) {
  op_case.inputs.insert(op_case.inputs.end(), 2, Shape{1});
  op_case.positive_inputs.push_back(op_case.inputs.size() - 1);
  op_case.attributes.Set("stochastic", int64_t{1});
  op_case.attributes.Set("stream", int64_t{3});
  return op_case;
}

UpdatedConvolution RandomUpdatedConvolution(CaseDraw& draw) {
  UpdatedConvolution c{};
  c.batch = draw.OneIn(24) ? 0 : draw.Between(1, 2);
  c.channels = draw.OneIn(24) ? 0 : draw.Size(24);
  c.out_channels = draw.OneIn(24) ? 0 : draw.Size(70);
  c.kernel = draw.Between(1, 3);
  c.stride = draw.Between(1, 2);
  c.padding = draw.Between(0, 2);
  c.height = draw.Between(3, 9);
  c.width = draw.Between(3, 9);
  return c;
}

OpCase MaybeWithFactor(CaseDraw& draw, OpCase op_case) {
  return draw.OneIn(2) ? op_case : WithUpdateAndFactor(std::move(op_case));
}

}  // namespace

std::vector<OpCase> Conv2dUpdateCases() {
  std::vector<OpCase> cases;
  // Columns: batch, height, width, channels, out channels, kernel, stride, padding.
  for (const UpdatedConvolution& c : std::vector<UpdatedConvolution>{
           {1, 1, 1, 1, 1, 1, 1, 0},     // everything one
           {0, 4, 4, 3, 5, 3, 1, 1},     // an empty batch
           {2, 6, 5, 7, 17, 3, 2, 1},    // odd numbers
           {2, 8, 8, 33, 70, 1, 2, 0},   // ranges that are not whole blocks of q8
           {3, 16, 16, 16, 32, 3, 1, 1}  // several parts
       }) {
    cases.insert(cases.end(), {c.Accumulate(true), c.Accumulate(false), c.Gather(true),
                               WithUpdateAndFactor(c.Gather(false)), c.Update(0), c.Update(1),
                               WithUpdateAndFactor(c.Update(1)), c.UpdatePlain(),
                               WithUpdateAndFactor(c.UpdatePlain())});
  }
  return cases;
}

OpCase Random_conv2d_accumulate(CaseDraw& draw) {
  const UpdatedConvolution c = RandomUpdatedConvolution(draw);
  return c.Accumulate(draw.OneIn(2));
}
OpCase Random_conv2d_sgd_gather(CaseDraw& draw) {
  const UpdatedConvolution c = RandomUpdatedConvolution(draw);
  return MaybeWithFactor(draw, c.Gather(draw.OneIn(2)));
}
OpCase Random_conv2d_sgd_update(CaseDraw& draw) {
  const UpdatedConvolution c = RandomUpdatedConvolution(draw);
  return MaybeWithFactor(draw, c.Update(draw.Between(0, 1)));
}
OpCase Random_conv2d_sgd_update_plain(CaseDraw& draw) {
  const UpdatedConvolution c = RandomUpdatedConvolution(draw);
  return MaybeWithFactor(draw, c.UpdatePlain());
}

namespace {

TEST(Conv2dUpdate, HasThePortsOfBothOpsWithoutTheGradient) {
  const OpDef& op = BuiltinOps().Get("conv2d_sgd_update");
  std::vector<std::string> names;
  for (const OpPort& port : op.inputs()) names.push_back(port.name);
  EXPECT_THAT(names, testing::ElementsAre("x", "dy", "weight", "momentum", "learning_rate",
                                          "update", "gradient_factor"));
  EXPECT_FALSE(op.AcceptsInputs(4));
  EXPECT_TRUE(op.AcceptsInputs(5));
  EXPECT_TRUE(op.AcceptsInputs(7));
  EXPECT_TRUE(op.inputs()[3].may_be_q8);
  EXPECT_TRUE(op.outputs()[1].may_be_q8);
  EXPECT_FALSE(op.outputs()[0].may_be_q8);
  EXPECT_TRUE(op.MayReuse(op.OutputIndex("next_weight"), op.InputIndex("weight")));
  EXPECT_FALSE(op.MayReuse(op.OutputIndex("next_weight"), op.InputIndex("momentum")));
  EXPECT_NE(op.default_attributes().Find("kernel_height"), nullptr);
  EXPECT_NE(op.default_attributes().Find("nesterov"), nullptr);
}

// x 2, dy 3: the gradient is 6.
TEST(Conv2dUpdate, UsesTheGradient) {
  const UpdatedConvolution one{1, 1, 1, 1, 1, 1, 1, 0};
  for (const auto& outputs :
       RunAllKernels(one.Accumulate(false), {{{2}, {}}, {{3}, {}}, {{10}, {}}, {{}, {5}}})) {
    EXPECT_EQ(outputs[0].floats[0], 16);
  }
  OpCase update = one.UpdatePlain();
  update.attributes.Set("weight_decay", 0.0);
  for (const auto& outputs :
       RunAllKernels(update, {{{2}, {}}, {{3}, {}}, {{1}, {}}, {{0.5}, {}}})) {
    EXPECT_EQ(outputs[0].floats[0], 1 - 0.5F * 6);
  }
}

TEST(Conv2dUpdate, AFactorOfZeroSkipsGradientsThatAreNotFinite) {
  const UpdatedConvolution one{1, 1, 1, 1, 1, 1, 1, 0};
  OpCase update = one.Update(0);
  update.inputs.insert(update.inputs.end(), 2, Shape{1});
  const auto outputs =
      RunOp(update,
            {{{INFINITY}, {}}, {{3}, {}}, {{1}, {}}, {{4}, {}}, {{0.5}, {}}, {{}, {0}}, {{0}, {}}});
  EXPECT_EQ(outputs[0].floats[0], 1);
  EXPECT_EQ(outputs[1].floats[0], 4);
  // Without the gradient, the first part still decays.
  OpCase gather = one.Gather(true);
  gather.inputs.insert(gather.inputs.end(), 2, Shape{1});
  gather.attributes.Set("momentum", 0.5);
  gather.attributes.Set("weight_decay", 0.25);
  for (const int seen : {0, 10}) {
    const auto gathered = RunOp(
        gather,
        {{{INFINITY}, {}}, {{3}, {}}, {{1}, {}}, {{4}, {}}, {{}, {seen}}, {{}, {0}}, {{0}, {}}});
    EXPECT_EQ(gathered[0].floats[0], seen == 0 ? 0.5F * 4 + 0.25F : 4);
  }
}

TEST(Conv2dUpdate, WrongUseSaysWhy) {
  const UpdatedConvolution c{2, 8, 8, 3, 16, 3, 1, 1};
  OpCase dy = c.Update(0);
  dy.inputs[1] = {2, 7, 8, 16};
  EXPECT_THAT(ShapeError(dy), HasSubstr("dy has shape (2, 7, 8, 16), expected (2, 8, 8, 16)"));
  OpCase weight = c.Update(0);
  weight.inputs[2] = {16, 3, 3, 4};
  EXPECT_THAT(ShapeError(weight),
              HasSubstr("'gradient' has shape (16, 3, 3, 3), expected (16, 3, 3, 4)"));
  OpCase momentum = c.Update(0);
  momentum.inputs[3] = {16};
  EXPECT_THAT(ShapeError(momentum), HasSubstr("'momentum'"));
  OpCase sum = c.Accumulate(true);
  sum.inputs[3] = {2};
  EXPECT_THAT(ShapeError(sum), HasSubstr("'seen'"));
  OpCase stochastic = c.UpdatePlain();
  stochastic.attributes.Set("stochastic", int64_t{1});
  EXPECT_THAT(ShapeError(stochastic), HasSubstr("needs the number of the update"));
}

}  // namespace
}  // namespace thimble
