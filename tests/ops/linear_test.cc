// linear and its gradients: kernels compared with references, the gradient rule with the complex
// step, wrong shapes with their messages.
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/case_draw.h"
#include "tests/support/op_check.h"
#include "tests/support/run_op.h"
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
  int64_t row_dims = 1;
  bool biased = true;

  std::span<const int64_t> Dims() const { return x.dims().subspan(static_cast<size_t>(row_dims)); }
  std::vector<int64_t> SampleDims() const { return {Dims().begin(), Dims().end()}; }
  int64_t features() const { return Shape(Dims()).elements(); }
  Shape w() const { return {outputs, features()}; }
  Shape dy() const {
    std::vector<int64_t> dims(x.dims().begin(), x.dims().begin() + row_dims);
    dims.push_back(outputs);
    return Shape(dims);
  }
  OpCase Forward() const {
    std::vector<Shape> inputs = {x, w()};
    if (biased) inputs.push_back({outputs});
    return LinearCase("linear", inputs, {{"row_dims", row_dims}});
  }
  OpCase GradWeight() const { return LinearCase("linear_grad_weight", {x, dy()}); }
  OpCase GradBias() const { return LinearCase("linear_grad_bias", {dy()}); }
  OpCase GradInput() const {
    return LinearCase("linear_grad_input", {w(), dy()}, {{"sample_dims", SampleDims()}});
  }
};

const std::vector<Layer> kLayers = {{{1, 1}, 1},
                                    {{0, 3}, 4},
                                    {{10, 128}, 10},
                                    {{7, 33}, 17},
                                    {{600, 40}, 50},
                                    {{3, 1100}, 70},
                                    {{2, 2, 3, 4}, 5},
                                    {{5, 1, 1, 16}, 3},
                                    {{3, 0}, 2},
                                    {{15, 17}, 130},
                                    // Sequences, whose positions are rows.
                                    {{6, 25, 40}, 33, 2},
                                    {{3, 5, 16}, 12, 2, false},
                                    {{2, 3, 4, 5}, 7, 2},
                                    {{2, 3, 4, 5}, 7, 3, false},
                                    {{4, 0, 6}, 3, 2},
                                    // Sums over thousands of rows.
                                    {{40, 60, 2}, 70, 2}};

// Rows in two dimensions or more.
Layer RandomSequenceLayer(CaseDraw& draw) {
  if (draw.OneIn(4)) return {{3, draw.Size(6), draw.Size(6), draw.Size(6)}, draw.Size(40), 3};
  if (draw.OneIn(4)) return {{draw.Size(9), draw.Size(40), 2}, draw.Size(30), 2};
  return {{draw.Size(9), draw.Size(30), draw.Size(90)}, draw.Size(90), 2};
}

// At most one long side, so that products stay small.
Layer RandomLayer(CaseDraw& draw) {
  const int64_t longest = draw.Between(0, 3);
  const auto size = [&](int64_t side) { return draw.Size(side == longest ? 700 : 60); };
  Layer layer{{size(0), size(1)}, size(2)};
  if (draw.OneIn(3)) {
    layer.x = {draw.Size(30), draw.Between(1, 8), draw.Between(1, 8), draw.Size(9)};
  }
  if (draw.OneIn(3)) layer = RandomSequenceLayer(draw);
  if (draw.OneIn(24)) {
    layer = {draw.OneIn(2) ? Shape{0, 5, 7} : Shape{4, 6, 0}, layer.outputs, draw.Between(1, 2)};
  }
  layer.biased = !draw.OneIn(3);
  return layer;
}

}  // namespace

std::vector<OpCase> LinearCases() {
  std::vector<OpCase> cases;
  for (const Layer& layer : kLayers) {
    cases.insert(cases.end(),
                 {layer.Forward(), layer.GradWeight(), layer.GradBias(), layer.GradInput()});
  }
  // Columns of two blocks of a GPU, more rows than they load at once.
  cases.push_back(Layer{{1100, 1}, 40}.GradBias());
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
  CheckGradient(Layer{{2, 2, 3, 2}, 3, 2}.Forward());
  CheckGradient(Layer{{2, 3, 4}, 3, 2, false}.Forward());
}

// Positions of sequences are rows like samples: the same numbers, in another shape.
TEST(LinearTest, SequencesOfRows) {
  const OpData x{{1, 2, 3, 4, 5, 6, 7, 8}, {}};
  const OpData w{{1, 0, 0, 1, 1, 1}, {}};
  const std::vector<float> expected = {1, 2, 3, 3, 4, 7, 5, 6, 11, 7, 8, 15};
  for (const auto& y : RunAllKernels(Layer{{2, 2, 2}, 3, 2, false}.Forward(), {x, w})) {
    EXPECT_EQ(y[0].floats, expected);
  }
  for (const auto& y : RunAllKernels(Layer{{4, 2}, 3, 1, false}.Forward(), {x, w})) {
    EXPECT_EQ(y[0].floats, expected);
  }
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
  OpCase rows = good.Forward();
  rows.attributes.Set("row_dims", int64_t{4});
  EXPECT_EQ(ShapeError(rows), "x has shape (2, 2, 3, 4), expected more than 4 dimensions of rows");
  rows.attributes.Set("row_dims", int64_t{0});
  EXPECT_EQ(ShapeError(rows), "row_dims is 0, expected at least 1");
}

TEST(LinearTest, GradientsCheckTheirShapes) {
  const Layer good{{2, 2, 3, 4}, 5};
  OpCase weight = good.GradWeight();
  weight.inputs[1] = {3, 5};
  EXPECT_EQ(ShapeError(weight), "x (2, 2, 3, 4) and dy (3, 5) have different batches");
  OpCase sequences = Layer{{2, 2, 3, 4}, 5, 2}.GradWeight();
  sequences.inputs[1] = {2, 3, 5};
  EXPECT_EQ(ShapeError(sequences), "x (2, 2, 3, 4) and dy (2, 3, 5) have different batches");
  OpCase flat = good.GradBias();
  flat.inputs[0] = {5};
  EXPECT_EQ(ShapeError(flat), "dy has shape (5), expected (batch, ..., outputs)");
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
  OpCase long_input = Layer{{2, 3, 4, 5}, 5, 3}.GradInput();
  long_input.attributes.Set("sample_dims", std::vector<int64_t>{5, 1, 1});
  EXPECT_EQ(ShapeError(long_input), "sample_dims has 3 entries, expected 1 to 2");
}

}  // namespace
}  // namespace thimble
