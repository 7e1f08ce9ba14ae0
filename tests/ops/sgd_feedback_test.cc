// Error feedback of sgd_update and sgd_apply_feedback: what rounding takes from a weight returns
// through its momentum.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/support/cuda_memory.h"
#include "tests/support/op_inputs.h"
#include "tests/support/run_op.h"
#include "thimble/ops/sgd_update/sgd_update.h"

namespace thimble {
namespace {

constexpr float kRate = 0.01F;
constexpr float kMomentum = 0.9F;
constexpr int64_t kCount = 1001;

// Weights of this type beside gradients and momentum in f32, which show what was returned.
OpCase FeedbackCase(const std::string& op, DType weights, int64_t stochastic, int64_t nesterov) {
  const Shape shape{kCount};
  OpCase op_case{.op = op, .inputs = {shape, shape, Shape{1}, Shape{1}}};
  op_case.number_types = {weights, DType::kF32, weights, DType::kF32};
  op_case.attributes = {{"momentum", double{kMomentum}},
                        {"feedback_rate", 1e-4},
                        {"stochastic", stochastic},
                        {"seed", int64_t{7}}};
  if (op == "sgd_update") {
    op_case.inputs.insert(op_case.inputs.begin(), shape);
    op_case.number_types = {weights, DType::kF32, DType::kF32, weights, DType::kF32};
    op_case.attributes.Set("nesterov", nesterov);
  }
  return op_case;
}

std::vector<float> StoredNormals(uint32_t stream, double scale, DType type) {
  std::vector<float> numbers;
  for (const double number : RandomNormals(/*seed=*/3, stream, kCount)) {
    numbers.push_back(static_cast<float>(Stored(scale * number, type)));
  }
  return numbers;
}

// The inputs of a case: weights of some 0.05, gradients and momentum.
std::vector<OpData> FeedbackInputs(const OpCase& op_case) {
  std::vector<OpData> inputs = {{StoredNormals(0, 0.05, op_case.number_types[0]), {}}};
  for (size_t i = 1; i + 2 < op_case.inputs.size(); ++i) {
    inputs.push_back({StoredNormals(static_cast<uint32_t>(i), 0.02, DType::kF32), {}});
  }
  inputs.push_back({{kRate}, {}});
  inputs.push_back({{}, {5}});
  return inputs;
}

// The kernels of the CPU, or those of the GPU.
void ExpectErrorsInMomentum(const OpCase& op_case, DeviceKind device) {
  const std::vector<OpData> inputs = FeedbackInputs(op_case);
  OpCase exact_case = op_case;
  exact_case.number_types = {DType::kF32};
  const std::vector<OpData> exact = RunOp(exact_case, inputs);
  const bool nesterov =
      op_case.attributes.Find("nesterov") != nullptr && op_case.attributes.Int("nesterov") != 0;
  const float gain = FeedbackGain(kMomentum, nesterov, 1e-4F, kRate);
  const std::vector<OpData> stored = RunOp(op_case, inputs, /*kernel=*/0, device);
  double lost = 0;
  for (size_t i = 0; i < static_cast<size_t>(kCount); ++i) {
    const float error = exact[0].floats[i] - stored[0].floats[i];
    lost = std::max(lost, std::abs(double{error}));
    const float expected = exact[1].floats[i] - gain * error;
    // Devices may round the exact weight differently, by a unit of f32.
    ASSERT_NEAR(stored[1].floats[i], expected, gain * 2e-8F + 1e-6F) << ToString(op_case) << i;
  }
  EXPECT_GT(lost, 1e-5);
}

void ExpectErrorsInMomentum(DeviceKind device) {
  for (const DType weights : {DType::kBF16, DType::kF16}) {
    for (const int64_t stochastic : {0, 1}) {
      for (const int64_t nesterov : {0, 1}) {
        ExpectErrorsInMomentum(FeedbackCase("sgd_update", weights, stochastic, nesterov), device);
      }
      ExpectErrorsInMomentum(FeedbackCase("sgd_apply_feedback", weights, stochastic, 0), device);
    }
  }
}

TEST(SgdFeedback, MomentumHoldsWhatRoundingTook) { ExpectErrorsInMomentum(DeviceKind::kCpu); }

TEST(CudaSgdFeedback, MomentumHoldsWhatRoundingTook) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no CUDA device";
  ExpectErrorsInMomentum(DeviceKind::kCuda);
}

TEST(SgdFeedback, GainReturnsTheErrorAsAWhole) {
  // A loss of 1 changes the momentum by -gain; later updates move the weight back by `returned`.
  for (const bool nesterov : {false, true}) {
    double momentum = -FeedbackGain(kMomentum, nesterov, 1e-4F, kRate);
    double returned = 0;
    for (int update = 0; update < 400; ++update) {
      momentum *= kMomentum;
      returned -= kRate * (nesterov ? kMomentum * momentum : momentum);
    }
    EXPECT_NEAR(returned, 1, 1e-5);
  }
}

TEST(SgdFeedback, NoGainWithoutARateOrMomentum) {
  EXPECT_EQ(FeedbackGain(kMomentum, false, 0, kRate), 0);
  EXPECT_EQ(FeedbackGain(0, false, 1e-4F, kRate), 0);
  EXPECT_EQ(FeedbackGain(kMomentum, false, 1e-4F, 0), FeedbackGain(kMomentum, false, 1e-4F, 1e-5F));
}

// The root mean square of how far weights in bf16 are from those in f32, in units of bf16 near
// 0.05, after 300 updates with the same gradients.
double DistanceAfterManyUpdates(double feedback_rate) {
  constexpr double kUnit = 0x1p-12;  // between 2^-5 and 2^-4
  OpCase short_case = FeedbackCase("sgd_update", DType::kBF16, /*stochastic=*/1, 0);
  short_case.attributes.Set("feedback_rate", feedback_rate);
  OpCase exact_case = short_case;
  exact_case.number_types = {DType::kF32};
  std::vector<OpData> inputs = FeedbackInputs(short_case);
  for (float& weight : inputs[0].floats) weight = 0.046875F;
  std::vector<OpData> exact_inputs = inputs;
  for (int update = 0; update < 300; ++update) {
    inputs[1].floats = StoredNormals(static_cast<uint32_t>(10 + update), 0.002, DType::kF32);
    inputs[4].integers[0] = update;
    exact_inputs[1] = inputs[1];
    for (const auto& [op_case, state] :
         {std::pair(&short_case, &inputs), std::pair(&exact_case, &exact_inputs)}) {
      const std::vector<OpData> next = RunOp(*op_case, *state);
      (*state)[0] = next[0];
      (*state)[2] = next[1];
    }
  }
  double sum = 0;
  for (size_t i = 0; i < static_cast<size_t>(kCount); ++i) {
    sum += std::pow((inputs[0].floats[i] - exact_inputs[0].floats[i]) / kUnit, 2);
  }
  return std::sqrt(sum / static_cast<double>(kCount));
}

TEST(SgdFeedback, ErrorsDoNotAddUp) {
  EXPECT_GT(DistanceAfterManyUpdates(0), 4);
  EXPECT_LT(DistanceAfterManyUpdates(1e-4), 1);
}

}  // namespace
}  // namespace thimble
