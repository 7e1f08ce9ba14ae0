// Batch norm with ReLU in one op gives the same bits as the two ops one after the other, forward
// and backward, on every SIMD target; so does its gradient with a sum in one op.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "tests/support/op_check.h"
#include "tests/support/op_inputs.h"
#include "tests/support/run_op.h"
#include "thimble/device/cpu/simd_target.h"

namespace thimble {
namespace {

using Floats = std::vector<float>;

std::string Describe(const Shape& x, const std::string& target, size_t kernel) {
  return ToString(x) + " on " + target + ", kernel " + std::to_string(kernel);
}

bool SameBits(const Floats& a, const Floats& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

// The inputs of one batch norm and the gradient that arrives at its output.
struct NormInputs {
  Shape shape;
  Floats x, gamma, beta, mean, variance, dy;
};

NormInputs Draw(const Shape& shape) {
  const Shape channels{shape[shape.rank() - 1]};
  const OpCase op_case{.op = "batch_norm_eval_grad",
                       .inputs = {shape, channels, channels, channels, channels, shape},
                       .positive_inputs = {4}};
  const PreparedCase prepared(op_case);
  const auto drawn = RandomInputs(prepared, 1.0);
  const auto floats = [&](size_t input) {
    return Floats(drawn[input].numbers.begin(), drawn[input].numbers.end());
  };
  return {shape, floats(0), floats(1), floats(2), floats(3), floats(4), floats(5)};
}

// Outputs of an op's kernel, one after the other.
std::vector<Floats> Run(const std::string& op, const std::vector<Shape>& shapes,
                        const Attributes& attributes, const std::vector<Floats>& inputs,
                        size_t kernel) {
  std::vector<OpData> data;
  for (const Floats& input : inputs) data.push_back({input, {}});
  std::vector<Floats> outputs;
  for (OpData& output :
       RunOp({.op = op, .inputs = shapes, .attributes = attributes}, data, kernel)) {
    outputs.push_back(std::move(output.floats));
  }
  return outputs;
}

const Attributes kWithRelu = {{"relu", int64_t{1}}};

// Calls body for the vector kernel on every target and for the reference.
void ForEachKernel(const std::function<void(const std::string& target, size_t kernel)>& body) {
  for (const std::string& target : SupportedSimdTargets()) {
    ASSERT_TRUE(PinSimdTarget(target).ok());
    body(target, 0);
  }
  ASSERT_TRUE(PinSimdTarget("auto").ok());
  body("any target", 1);
}

void ExpectSameAsPair(const NormInputs& in) {
  const Shape& x = in.shape;
  const Shape c{x[x.rank() - 1]};
  ForEachKernel([&](const std::string& target, size_t kernel) {
    SCOPED_TRACE(Describe(x, target, kernel));
    const auto plain = Run("batch_norm", {x, c, c}, {}, {in.x, in.gamma, in.beta}, kernel);
    const auto y = Run("relu", {x}, {}, {plain[0]}, kernel)[0];
    const auto fused = Run("batch_norm", {x, c, c}, kWithRelu, {in.x, in.gamma, in.beta}, kernel);
    EXPECT_TRUE(SameBits(fused[0], y));
    EXPECT_TRUE(SameBits(fused[1], plain[1]));
    EXPECT_TRUE(SameBits(fused[2], plain[2]));

    const auto gate = Run("relu_grad", {x, x}, {}, {y, in.dy}, kernel)[0];
    const auto grad = [&](const Attributes& attributes, const Floats& dy) {
      return Run("batch_norm_grad", {x, c, c, c, c, x}, attributes,
                 {in.x, in.gamma, in.beta, plain[1], plain[2], dy}, kernel);
    };
    const auto pair = grad({}, gate);
    const auto one = grad(kWithRelu, in.dy);
    for (size_t output = 0; output < 3; ++output) {
      EXPECT_TRUE(SameBits(one[output], pair[output])) << "gradient " << output;
    }

    // A gradient from another path; x is used for it.
    const auto sum = Run("add", {x, x}, {}, {in.x, pair[0]}, kernel)[0];
    const auto three = Run("batch_norm_grad_add", {x, c, c, c, c, x, x}, kWithRelu,
                           {in.x, in.gamma, in.beta, plain[1], plain[2], in.dy, in.x}, kernel);
    EXPECT_TRUE(SameBits(three[0], sum));
    EXPECT_TRUE(SameBits(three[1], pair[1]) && SameBits(three[2], pair[2]));
  });
}

void ExpectSameAsPairInEvaluation(const NormInputs& in) {
  const Shape& x = in.shape;
  const Shape c{x[x.rank() - 1]};
  ForEachKernel([&](const std::string& target, size_t kernel) {
    SCOPED_TRACE(Describe(x, target, kernel));
    const auto norm = [&](const Attributes& attributes) {
      return Run("batch_norm_eval", {x, c, c, c, c}, attributes,
                 {in.x, in.gamma, in.beta, in.mean, in.variance}, kernel)[0];
    };
    const auto y = Run("relu", {x}, {}, {norm({})}, kernel)[0];
    EXPECT_TRUE(SameBits(norm(kWithRelu), y));

    const auto gate = Run("relu_grad", {x, x}, {}, {y, in.dy}, kernel)[0];
    const auto grad = [&](const Attributes& attributes, const Floats& dy) {
      return Run("batch_norm_eval_grad", {x, c, c, c, c, x}, attributes,
                 {in.x, in.gamma, in.beta, in.mean, in.variance, dy}, kernel);
    };
    const auto pair = grad({}, gate);
    const auto one = grad(kWithRelu, in.dy);
    for (size_t output = 0; output < 3; ++output) {
      EXPECT_TRUE(SameBits(one[output], pair[output])) << "gradient " << output;
    }
  });
}

const Shape kShapes[] = {{0, 3},         {1, 1},          {5, 3},          {3, 5, 7, 33},
                         {2, 9, 9, 16},  {2, 9, 9, 32},   {3, 16, 16, 64}, {2, 5, 5, 128},
                         {2, 5, 7, 300}, {4, 48, 48, 16}, {2, 40, 40, 7}};

TEST(BatchNormReluTest, GivesTheBitsOfThePair) {
  for (const Shape& shape : kShapes) ExpectSameAsPair(Draw(shape));
}

TEST(BatchNormReluTest, GivesTheBitsOfThePairInEvaluation) {
  for (const Shape& shape : kShapes) ExpectSameAsPairInEvaluation(Draw(shape));
}

TEST(BatchNormReluTest, AgreesOnTheKinkItself) {
  // Mean 0, beta 0: a third of all normalized values are exactly zero, of either sign.
  NormInputs in = Draw({90, 17});
  for (size_t i = 0; i < in.x.size(); ++i) {
    const size_t row = i / 17;
    in.x[i] = row % 3 == 0 ? (row % 2 == 0 ? 0.0F : -0.0F) : (row % 3 == 1 ? 1.0F : -1.0F);
  }
  in.beta.assign(17, 0.0F);
  in.mean.assign(17, 0.0F);
  ExpectSameAsPair(in);
  ExpectSameAsPairInEvaluation(in);
}

TEST(BatchNormReluTest, AgreesBesideLargeMeans) {
  // The rounding of the mean is as large as the distance between neighbouring numbers.
  NormInputs in = Draw({300, 20});
  for (float& x : in.x) x = std::round(x * 64) / 64 + 1e5F;
  ExpectSameAsPair(in);
}

TEST(BatchNormReluTest, PassesNanAsThePairDoes) {
  NormInputs in = Draw({40, 19});
  in.x[3] = NAN;
  in.dy[7] = NAN;
  ExpectSameAsPair(in);
  ExpectSameAsPairInEvaluation(in);
  for (const auto& outputs : RunAllKernels({.op = "batch_norm",
                             .inputs = {in.shape, Shape{19}, Shape{19}},
                             .attributes = kWithRelu},
                                           {{in.x, {}}, {in.gamma, {}}, {in.beta, {}}})) {
    EXPECT_TRUE(std::isnan(outputs[0].floats[3]) && std::isnan(outputs[0].floats[3 + 19]));
    EXPECT_FALSE(std::isnan(outputs[0].floats[4]));
  }
}

}  // namespace
}  // namespace thimble
