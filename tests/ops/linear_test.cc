// linear and its gradients: kernels compared with references, the gradient rule with the complex
// step, wrong shapes with their messages.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/case_draw.h"
#include "tests/support/op_check.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

// Members that are not named keep their defaults.
OpCase LinearCase(std::string op, std::vector<Shape> inputs, Attributes attributes = {}) {
  OpCase op_case;
  op_case.op = std::move(op);
  op_case.inputs = std::move(inputs);
  op_case.attributes = std::move(attributes);
  return op_case;
}

struct Layer {
  Shape x;
  int64_t outputs;

  std::vector<int64_t> SampleDims() const { return {x.dims().begin() + 1, x.dims().end()}; }
  int64_t features() const { return Shape(x.dims().subspan(1)).elements(); }
  Shape w() const { return {outputs, features()}; }
  Shape dy() const { return {x[0], outputs}; }
  OpCase Forward() const { return LinearCase("linear", {x, w(), {outputs}}); }
  OpCase GradWeight() const { return LinearCase("linear_grad_weight", {x, dy()}); }
  OpCase GradBias() const { return LinearCase("linear_grad_bias", {dy()}); }
  OpCase GradInput() const {
    return LinearCase("linear_grad_input", {w(), dy()}, {{"sample_dims", SampleDims()}});
  }
};

const std::vector<Layer> kLayers = {
    {{1, 1}, 1},     {{0, 3}, 4},       {{10, 128}, 10},    {{7, 33}, 17}, {{600, 40}, 50},
    {{3, 1100}, 70}, {{2, 2, 3, 4}, 5}, {{5, 1, 1, 16}, 3}, {{3, 0}, 2},   {{15, 17}, 130}};

// At most one long side, so that products stay small.
Layer RandomLayer(CaseDraw& draw) {
  const int64_t longest = draw.Between(0, 3);
  const auto size = [&](int64_t side) { return draw.Size(side == longest ? 700 : 60); };
  Layer layer{{size(0), size(1)}, size(2)};
  if (draw.OneIn(3)) {
    layer.x = {draw.Size(30), draw.Between(1, 8), draw.Between(1, 8), draw.Size(9)};
  }
  if (draw.OneIn(24)) layer.x = draw.OneIn(2) ? Shape{0, 5} : Shape{4, 0};
  return layer;
}

}  // namespace

std::vector<OpCase> LinearCases() {
  std::vector<OpCase> cases;
  for (const Layer& layer : kLayers) {
    cases.insert(cases.end(),
                 {layer.Forward(), layer.GradWeight(), layer.GradBias(), layer.GradInput()});
  }
  // Results of many tiles, along each way through the operands.
  cases.push_back(Layer{{450, 17}, 460}.Forward());
  cases.push_back(Layer{{17, 460}, 450}.GradWeight());
  cases.push_back(Layer{{450, 460}, 17}.GradInput());
  return cases;
}

OpCase Random_linear(CaseDraw& draw) { return RandomLayer(draw).Forward(); }
OpCase Random_linear_grad_weight(CaseDraw& draw) { return RandomLayer(draw).GradWeight(); }
OpCase Random_linear_grad_bias(CaseDraw& draw) { return RandomLayer(draw).GradBias(); }
OpCase Random_linear_grad_input(CaseDraw& draw) { return RandomLayer(draw).GradInput(); }

namespace {

TEST(LinearTest, Gradient) {
  CheckGradient(Layer{{3, 5}, 4}.Forward());
  CheckGradient(Layer{{2, 2, 3, 2}, 3}.Forward());
}

TEST(LinearTest, WrongUseSaysWhy) {
  const Layer good{{2, 2, 3, 4}, 5};
  OpCase rank = good.Forward();
  rank.inputs[0] = {24};
  EXPECT_EQ(ShapeError(rank), "x has shape (24), expected (batch, ...)");
  OpCase weight = good.Forward();
  weight.inputs[1] = {5, 2, 12};
  EXPECT_EQ(ShapeError(weight), "w has shape (5, 2, 12), expected rank 2");
  OpCase features = good.Forward();
  features.inputs[1] = {5, 23};
  EXPECT_EQ(ShapeError(features), "x (2, 2, 3, 4) has 24 features, w (5, 23) expects 23");
  OpCase bias = good.Forward();
  bias.inputs[2] = {5, 1};
  EXPECT_EQ(ShapeError(bias), "b has shape (5, 1), expected (5)");
}

TEST(LinearTest, GradientsCheckTheirShapes) {
  const Layer good{{2, 2, 3, 4}, 5};
  OpCase weight = good.GradWeight();
  weight.inputs[1] = {3, 5};
  EXPECT_EQ(ShapeError(weight), "x (2, 2, 3, 4) and dy (3, 5) have different batches");
  OpCase outputs = good.GradInput();
  outputs.inputs[1] = {2, 6};
  EXPECT_EQ(ShapeError(outputs), "dy (2, 6) has 6 outputs, w (5, 24) expects 5");
  OpCase input = good.GradInput();
  input.attributes.Set("sample_dims", std::vector<int64_t>{5, 5});
  EXPECT_EQ(ShapeError(input), "sample_dims give 25 features, w (5, 24) expects 24");
  input.attributes.Set("sample_dims", std::vector<int64_t>{-24});
  EXPECT_EQ(ShapeError(input), "sample_dims has a negative entry -24");
  input.attributes.Set("sample_dims", std::vector<int64_t>{});
  EXPECT_EQ(ShapeError(input), "sample_dims has 0 entries, expected 1 to 4");
}

}  // namespace
}  // namespace thimble
