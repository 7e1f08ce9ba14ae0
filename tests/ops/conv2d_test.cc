// conv2d and its gradients: kernels against references, gradient rule against the complex step,
// wrong shapes against their messages.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/op_check.h"
#include "thimble/grad/differentiate.h"
#include "thimble/graph/append_node.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

// Members that are not named keep their defaults.
OpCase MakeCase(std::string op, std::vector<Shape> inputs, Attributes attributes = {}) {
  OpCase op_case;
  op_case.op = std::move(op);
  op_case.inputs = std::move(inputs);
  op_case.attributes = std::move(attributes);
  return op_case;
}

struct Convolution {
  int64_t batch, height, width, channels, out_channels, kernel_height, kernel_width, stride,
      padding;

  Shape x() const { return {batch, height, width, channels}; }
  Shape w() const { return {out_channels, kernel_height, kernel_width, channels}; }
  Shape dy() const {
    return {batch, (height + 2 * padding - kernel_height) / stride + 1,
            (width + 2 * padding - kernel_width) / stride + 1, out_channels};
  }
  OpCase Forward() const {
    return MakeCase("conv2d", {x(), w()}, {{"stride", stride}, {"padding", padding}});
  }
  OpCase GradWeight() const {
    return MakeCase("conv2d_grad_weight", {x(), dy()},
                    {{"stride", stride},
                     {"padding", padding},
                     {"kernel_height", kernel_height},
                     {"kernel_width", kernel_width}});
  }
  OpCase GradInput() const {
    return MakeCase(
        "conv2d_grad_input", {w(), dy()},
        {{"stride", stride}, {"padding", padding}, {"height", height}, {"width", width}});
  }
};

// Columns: batch, height, width, channels, out channels, kernel height and width, stride, padding.
const std::vector<Convolution> kConvolutions = {
    {1, 1, 1, 1, 1, 1, 1, 1, 0},      // everything one
    {0, 4, 4, 3, 5, 3, 3, 1, 1},      // an empty batch
    {1, 1, 1, 3, 4, 3, 3, 1, 1},      // one pixel, padding all around
    {2, 5, 7, 3, 16, 3, 3, 1, 1},     // the stem
    {2, 6, 5, 7, 17, 3, 3, 2, 1},     // stride that does not divide the size
    {3, 7, 7, 17, 10, 2, 2, 2, 0},    // windows side by side; the last row and column unused
    {2, 8, 8, 33, 7, 1, 1, 2, 0},     // a shortcut: three of four pixels get no gradient
    {2, 4, 3, 1, 3, 1, 1, 3, 1},      // corners read padding only
    {1, 9, 8, 16, 33, 5, 3, 3, 2},    // a kernel that is not square
    {1, 2, 2, 3, 4, 5, 5, 1, 2},      // a kernel larger than the image
    {1, 4, 4, 5, 6, 2, 3, 4, 0},      // a stride larger than the kernel
    {1, 3, 3, 2, 3, 2, 2, 5, 1},      // a stride larger than the image
    {3, 16, 16, 16, 32, 3, 3, 1, 1},  // depth of the weight gradient in parts
    {2, 8, 8, 64, 33, 3, 3, 1, 1},    // several blocks of depth
    {1, 31, 17, 3, 16, 3, 3, 2, 1},
};

}  // namespace

std::vector<OpCase> Conv2dCases() {
  std::vector<OpCase> cases;
  for (const Convolution& c : kConvolutions) {
    cases.insert(cases.end(), {c.Forward(), c.GradWeight(), c.GradInput()});
  }
  return cases;
}

namespace {

TEST(Conv2dTest, Gradient) {
  for (const Convolution& c : std::vector<Convolution>{{2, 4, 5, 3, 4, 3, 3, 1, 1},
                                                       {1, 5, 4, 2, 3, 3, 2, 2, 1},
                                                       {2, 3, 3, 2, 2, 1, 1, 2, 0},
                                                       {1, 6, 6, 1, 2, 5, 5, 3, 2}}) {
    CheckGradient(c.Forward());
  }
}

TEST(Conv2dTest, WrongUseSaysWhy) {
  const Convolution good{2, 8, 8, 3, 16, 3, 3, 1, 1};
  OpCase rank = good.Forward();
  rank.inputs[0] = {2, 8, 8};
  EXPECT_EQ(ShapeError(rank),
            "x has shape (2, 8, 8), expected four dimensions (batch, height, width, channels)");
  OpCase channels = good.Forward();
  channels.inputs[1] = {16, 3, 3, 4};
  EXPECT_EQ(ShapeError(channels), "x (2, 8, 8, 3) has 3 channels, w (16, 3, 3, 4) expects 4");
  OpCase kernel = good.Forward();
  kernel.inputs[1] = {16, 11, 3, 3};
  EXPECT_EQ(ShapeError(kernel), "a kernel of 11 x 3 is larger than the padded input of 10 x 10");
  OpCase empty = good.Forward();
  empty.inputs[1] = {16, 3, 0, 3};
  EXPECT_EQ(ShapeError(empty), "a kernel of 3 x 0 is empty");
  OpCase stride = good.Forward();
  stride.attributes.Set("stride", int64_t{0});
  EXPECT_EQ(ShapeError(stride), "stride 0, expected at least 1");
  OpCase padding = good.Forward();
  padding.attributes.Set("padding", int64_t{-1});
  EXPECT_EQ(ShapeError(padding), "padding -1, expected 0 to 1048576");
}

TEST(Conv2dTest, GradientsCheckTheirShapes) {
  const Convolution good{2, 8, 8, 3, 16, 3, 3, 1, 1};
  OpCase weight = good.GradWeight();
  weight.inputs[1] = {2, 7, 8, 16};
  EXPECT_EQ(ShapeError(weight), "dy has shape (2, 7, 8, 16), expected (2, 8, 8, 16)");
  OpCase input = good.GradInput();
  input.attributes.Set("height", int64_t{0});
  EXPECT_EQ(ShapeError(input), "x of 0 x 8 pixels, expected at least 1 x 1");
  input.attributes.Set("height", int64_t{9});
  EXPECT_EQ(ShapeError(input), "dy has shape (2, 8, 8, 16), expected (2, 9, 8, 16)");
}

TEST(Conv2dTest, CountsFlops) {
  const Convolution c{2, 8, 8, 3, 16, 3, 3, 2, 1};
  const OpDef& op = BuiltinOps().Get("conv2d");
  const std::vector<Shape> inputs = {c.x(), c.w()};
  const std::vector<Shape> outputs = {c.dy()};
  const OpCase forward = c.Forward();
  EXPECT_EQ(op.CountFlops({inputs, outputs, forward.attributes}),
            2 * (2 * 4 * 4) * 16 * (3 * 3 * 3));
}

// Backward nodes of a convolution whose given inputs want a gradient.
std::vector<std::string> BackwardOps(const std::vector<size_t>& wanted) {
  const Convolution c{2, 8, 8, 3, 16, 3, 3, 1, 1};
  Graph graph;
  const std::vector<ValueId> inputs = {
      graph.AddValue({"x", c.x(), DType::kF32, Role::kInput, {}, {}}),
      graph.AddValue({"w", c.w(), DType::kF32, Role::kParameter, {}, {}})};
  const ValueId dy = graph.AddValue({"dy", c.dy(), DType::kF32, Role::kInput, {}, {}});
  NodeSpec spec;
  spec.op = "conv2d";
  spec.inputs = inputs;
  spec.attributes = c.Forward().attributes;
  const auto outputs = AppendNode(graph, BuiltinOps(), spec);
  std::vector<ValueId> wrt;
  for (size_t input : wanted) wrt.push_back(inputs[input]);
  EXPECT_TRUE(Differentiate(graph, BuiltinOps(), {{outputs.value()[0], dy}}, wrt).ok());
  std::vector<std::string> ops;
  for (size_t node = 1; node < graph.nodes.size(); ++node) ops.push_back(graph.nodes[node].op);
  return ops;
}

TEST(Conv2dTest, EmitsOnlyWantedGradientsWeightFirst) {
  using Ops = std::vector<std::string>;
  EXPECT_EQ(BackwardOps({0, 1}), (Ops{"conv2d_grad_weight", "conv2d_grad_input"}));
  EXPECT_EQ(BackwardOps({1}), Ops{"conv2d_grad_weight"});
  EXPECT_EQ(BackwardOps({0}), Ops{"conv2d_grad_input"});
}

}  // namespace
}  // namespace thimble
