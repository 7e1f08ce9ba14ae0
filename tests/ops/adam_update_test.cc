#include "thimble/ops/adam_update/adam_update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/support/call_kernel.h"
#include "tests/support/case_draw.h"
#include "tests/support/cuda_copies.h"
#include "tests/support/op_check.h"
#include "tests/support/op_inputs.h"
#include "tests/support/run_op.h"

namespace thimble {
namespace {

using testing::HasSubstr;

using Floats = std::vector<float>;

OpCase AdamCase(const Shape& shape, const Attributes& attributes = {}) {
  return {.op = "adam_update",
          .inputs = {shape, shape, shape, shape, Shape{1}, Shape{1}},
          .attributes = attributes,
          .positive_inputs = {3, 4}};
}

OpCase WithAdamFactor(OpCase op_case) {
  op_case.inputs.push_back(Shape{1});
  op_case.positive_inputs.push_back(kAdamUpdateInputs.factor);
  return op_case;
}

OpCase AdamAtRandom(OpCase op_case) {
  op_case.attributes.Set("stochastic", int64_t{1});
  op_case.attributes.Set("seed", int64_t{7});
  op_case.attributes.Set("stream", int64_t{3});
  return op_case;
}

}  // namespace

std::vector<OpCase> AdamUpdateCases() {
  std::vector<OpCase> cases;
  for (const Shape& shape : {Shape{1}, Shape{0}, Shape{3, 3, 5, 33}, Shape{40001}}) {
    cases.push_back(AdamCase(shape, {{"weight_decay", 1e-2}}));
    cases.push_back(AdamAtRandom(AdamCase(shape)));
    cases.push_back(AdamAtRandom(WithAdamFactor(AdamCase(shape, {{"beta2", 0.98}}))));
  }
  // The first update; betas without a bound; without moments.
  OpCase first = AdamCase(Shape{100});
  first.integer_bound = 1;
  cases.push_back(first);
  cases.push_back(AdamCase(Shape{100}, {{"beta1", 0.9}, {"beta2", 0.5}}));
  cases.push_back(AdamCase(Shape{100}, {{"beta1", 0.0}, {"beta2", 0.0}}));
  return cases;
}

OpCase Random_adam_update(CaseDraw& draw) {
  OpCase op_case = AdamCase(draw.AnyShape(), {{"beta1", 0.95 * draw.Fraction()},
                                              {"beta2", 1 - std::exp2(-10 * draw.Fraction())},
                                              {"epsilon", std::exp2(-30 * draw.Fraction())},
                                              {"weight_decay", 0.1 * draw.Fraction()}});
  op_case.integer_bound = draw.OneIn(2) ? 3 : 1'000'000;
  if (draw.OneIn(2)) op_case = AdamAtRandom(std::move(op_case));
  return draw.OneIn(2) ? op_case : WithAdamFactor(std::move(op_case));
}

namespace {

OpData AdamFloats(Floats numbers) { return {std::move(numbers), {}}; }
OpData AdamInteger(int32_t number) { return {{}, {number}}; }

// The formula of PyTorch, in doubles.
struct AdamElement {
  double weight, m = 0, v = 0;

  void Update(const AdamSpec& spec, double rate, double gradient, int t) {
    weight *= 1 - rate * spec.weight_decay;
    m = spec.beta1 * m + (1 - spec.beta1) * gradient;
    v = spec.beta2 * v + (1 - spec.beta2) * gradient * gradient;
    const double corrected_m = m / (1 - std::pow(spec.beta1, t));
    const double corrected_v = v / (1 - std::pow(spec.beta2, t));
    weight -= rate * corrected_m / (std::sqrt(corrected_v) + spec.epsilon);
  }
};

TEST(AdamUpdate, FollowsPyTorch) {
  const AdamSpec spec{.beta1 = 0.9, .beta2 = 0.98, .epsilon = 1e-3, .weight_decay = 0.01};
  const OpCase op_case = AdamCase(Shape{3}, {{"beta1", spec.beta1},
                                             {"beta2", spec.beta2},
                                             {"epsilon", spec.epsilon},
                                             {"weight_decay", spec.weight_decay}});
  const float gradients[4][3] = {{1, -0.01F, 0}, {0.5F, 0.02F, 3}, {-2, 0, 1e-4F}, {0, 0.1F, -1}};
  const float rate = 0.1F;
  for (size_t kernel = 0; kernel < 2; ++kernel) {
    AdamElement expected[3] = {{1}, {-0.25}, {8}};
    std::vector<OpData> state = {AdamFloats({1, -0.25F, 8}), AdamFloats({0, 0, 0}),
                                 AdamFloats({0, 0, 0})};
    for (int update = 0; update < 4; ++update) {
      const float* gradient = gradients[update];
      state = RunOp(op_case,
                    {state[0], AdamFloats(Floats(gradient, gradient + 3)), state[1], state[2],
                     AdamFloats({rate}), AdamInteger(update)},
                    kernel);
      for (size_t i = 0; i < 3; ++i) {
        expected[i].Update(spec, rate, gradient[i], update + 1);
        EXPECT_FLOAT_EQ(state[0].floats[i], static_cast<float>(expected[i].weight)) << update;
        EXPECT_FLOAT_EQ(state[1].floats[i], static_cast<float>(expected[i].m)) << update;
        EXPECT_FLOAT_EQ(state[2].floats[i], static_cast<float>(std::sqrt(expected[i].v)));
      }
    }
  }
}

// By hand: the first step has the size of the learning rate, for any gradient.
TEST(AdamUpdate, TheFirstStepIsTheLearningRate) {
  for (const auto& outputs :
       RunAllKernels(AdamCase(Shape{3}),
                     {AdamFloats({1, 1, 1}), AdamFloats({1e-4F, -7, 300}), AdamFloats({0, 0, 0}),
                      AdamFloats({0, 0, 0}), AdamFloats({0.25F}), AdamInteger(0)})) {
    EXPECT_NEAR(outputs[0].floats[0], 0.75F, 0.25e-4);  // epsilon is 1e-4 of this gradient
    EXPECT_FLOAT_EQ(outputs[0].floats[1], 1.25F);
    EXPECT_FLOAT_EQ(outputs[0].floats[2], 0.75F);
    EXPECT_FLOAT_EQ(outputs[1].floats[2], 30.0F);
    EXPECT_FLOAT_EQ(outputs[2].floats[2], static_cast<float>(300 * std::sqrt(0.001)));
  }
}

TEST(AdamUpdate, DecayDoesNotGoThroughTheMoments) {
  for (const auto& outputs :
       RunAllKernels(AdamCase(Shape{1}, {{"weight_decay", 0.5}}),
                     {AdamFloats({8}), AdamFloats({0}), AdamFloats({0}), AdamFloats({0}),
                      AdamFloats({0.25F}), AdamInteger(3)})) {
    EXPECT_EQ(outputs[0].floats[0], 7);
    EXPECT_EQ(outputs[1].floats[0], 0);
    EXPECT_EQ(outputs[2].floats[0], 0);
  }
}

TEST(AdamFactors, CorrectTheFirstUpdatesAndNotTheLast) {
  const AdamSpec spec{.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.5};
  const AdamFactors first(spec, 0.25, 0);
  EXPECT_DOUBLE_EQ(first.rate, 0.25 / (1 - 0.9));
  EXPECT_DOUBLE_EQ(first.root_scale, 1 / std::sqrt(1 - 0.999));
  EXPECT_DOUBLE_EQ(first.decay, 0.125);
  const AdamFactors third(spec, 0.25, 2);
  EXPECT_DOUBLE_EQ(third.rate, 0.25 / 0.271);
  EXPECT_NEAR(third.root_scale, 1 / std::sqrt(0.002997001), 1e-11);
  const AdamFactors last(spec, 0.25, 1'000'000);
  EXPECT_EQ(last.rate, 0.25);
  EXPECT_EQ(last.root_scale, 1);
  EXPECT_EQ(AdamFactors(spec, 0.25, INT32_MAX).rate, 0.25);
}

// Gradients that make the first moment as large as it can be beside the second.
TEST(AdamFactors, TheBoundIsNeverExceeded) {
  const AdamSpec spec{.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0};
  const AdamFactors factors(spec, 1, 0);
  EXPECT_NEAR(factors.bound_slope, 7.27, 0.01);
  AdamElement element{0};
  constexpr int kUpdates = 300;
  for (int t = 1; t <= kUpdates; ++t) {
    element.Update(spec, 1, std::pow(0.9 / 0.999, kUpdates - t), t);
  }
  const double ratio = element.m / std::sqrt(element.v);
  EXPECT_LE(ratio, factors.bound_slope * (1 + 1e-12));
  EXPECT_GT(ratio, factors.bound_slope * (1 - 1e-6));
}

// In exact numbers such a pair cannot exist.
TEST(AdamUpdate, ARootThatWasRoundedToZeroMakesNoLargeStep) {
  for (const auto& outputs :
       RunAllKernels(AdamCase(Shape{2}),
                     {AdamFloats({1, 1}), AdamFloats({0, 1e-6F}), AdamFloats({0.01F, -0.01F}),
                      AdamFloats({0, 0}), AdamFloats({0.125F}), AdamInteger(1'000'000)})) {
    EXPECT_EQ(outputs[0].floats[0], 1);
    EXPECT_GT(outputs[0].floats[1], 1);
    EXPECT_LE(outputs[0].floats[1], 1 + 7.28F * 0.125F);
    EXPECT_FLOAT_EQ(outputs[1].floats[0], 0.009F);
  }
}

TEST(AdamUpdate, AFactorUndoesTheScaleOfTheLoss) {
  const OpCase plain = AdamCase(Shape{2});
  const auto run = [&](const OpCase& op_case, float scale, std::vector<OpData> more) {
    std::vector<OpData> inputs = {AdamFloats({1, 2}),    AdamFloats({3 * scale, -scale}),
                                  AdamFloats({0.5F, 4}), AdamFloats({1, 5}),
                                  AdamFloats({0.125F}),  AdamInteger(7)};
    inputs.insert(inputs.end(), more.begin(), more.end());
    return RunOp(op_case, inputs);
  };
  const auto expected = run(plain, 1, {});
  const auto actual = run(WithAdamFactor(plain), 128, {AdamFloats({1.0F / 128})});
  for (size_t o = 0; o < 3; ++o) EXPECT_EQ(actual[o].floats, expected[o].floats);
}

TEST(AdamUpdate, AFactorOfZeroSkipsTheUpdate) {
  for (const auto& outputs :
       RunAllKernels(WithAdamFactor(AdamCase(Shape{2}, {{"weight_decay", 0.5}})),
                     {AdamFloats({1, 2}), AdamFloats({NAN, INFINITY}), AdamFloats({3, -4}),
                      AdamFloats({5, 6}), AdamFloats({0.5F}), AdamInteger(0), AdamFloats({0})})) {
    EXPECT_EQ(outputs[0].floats, (Floats{1, 2}));
    EXPECT_EQ(outputs[1].floats, (Floats{3, -4}));
    EXPECT_EQ(outputs[2].floats, (Floats{5, 6}));
  }
}

TEST(AdamUpdate, PassesNanOfGradient) {
  for (const auto& outputs :
       RunAllKernels(AdamCase(Shape{1}), {AdamFloats({1}), AdamFloats({NAN}), AdamFloats({0}),
                                          AdamFloats({0}), AdamFloats({0.1F}), AdamInteger(0)})) {
    for (const OpData& output : outputs) EXPECT_TRUE(std::isnan(output.floats[0]));
  }
}

// Equal numbers, except the first of each block of q8, which decides the scale of the block.
constexpr size_t kManyNumbers = 20'000;
TestTensor ManyEqual(DType type, float number) {
  Floats numbers(kManyNumbers, number);
  for (size_t i = 0; i < kManyNumbers; i += kQ8BlockNumbers) numbers[i] = 1;
  return TestTensor({static_cast<int64_t>(kManyNumbers)}, type, numbers);
}

// The mean of those that were equal is `expected`, although none of them is.
void ExpectMean(TestTensor& tensor, double expected) {
  const Floats numbers = tensor.Numbers();
  double sum = 0;
  double most = 0;
  size_t count = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i % kQ8BlockNumbers == 0) continue;
    sum += numbers[i];
    most = std::max(most, std::abs(numbers[i] - expected));
    ++count;
  }
  EXPECT_GT(most, 1e-5);
  EXPECT_NEAR(sum / static_cast<double>(count), expected, 0.03 * most);
}

TEST(AdamUpdate, AllOutputsAreRoundedAtRandom) {
  for (const DType type : {DType::kF16, DType::kBF16, DType::kQ8}) {
    SCOPED_TRACE(Name(type));
    TestTensor weight = ManyEqual(type == DType::kQ8 ? DType::kF16 : type, 0.75F);
    TestTensor gradient = ManyEqual(DType::kF32, 0.3F);
    TestTensor moment = ManyEqual(type, 0.25F);
    TestTensor root = ManyEqual(type, 0.5F);
    TestTensor rate(Shape{1}, DType::kF32, {0.01F});
    TestTensor update = TestTensor::Integer(20);
    const double stored_root = root.Numbers()[1];
    AdamElement exact{.weight = 0.75, .m = moment.Numbers()[1], .v = stored_root * stored_root};
    exact.Update({0.9, 0.98, 1e-8, 0}, double{0.01F}, double{0.3F}, 21);
    CallKernel(
        {"adam_update",
         "AdamUpdateCpu",
         {weight.View(), gradient.View(), moment.View(), root.View(), rate.View(), update.View()},
         {weight.View(), moment.View(), root.View()},
         {{"stochastic", int64_t{1}}, {"stream", int64_t{5}}, {"beta2", 0.98}}},
        {.threads = 2});
    ExpectMean(weight, exact.weight);
    ExpectMean(moment, exact.m);
    ExpectMean(root, std::sqrt(exact.v));
  }
}

// ---- Groups of updates on a GPU

struct AdamTypes {
  DType weight, gradient, state;
};

// The arrays of some tensors after an update in place, rounded at random.
std::vector<std::vector<float>> AfterAdamUpdate(DeviceKind device, const AdamTypes& types,
                                                const std::vector<int64_t>& sizes) {
  std::vector<TestTensor> arrays;
  const auto add = [&](int64_t size, DType type, const auto& change) {
    Floats numbers;
    for (const double normal : RandomNormals(/*seed=*/3, static_cast<uint32_t>(arrays.size()),
                                             static_cast<size_t>(size))) {
      numbers.push_back(static_cast<float>(change(normal)));
    }
    arrays.emplace_back(Shape{size}, type, numbers);
  };
  const auto same = [](double number) { return number; };
  for (const int64_t size : sizes) {
    add(size, types.weight, same);
    add(size, types.gradient, [](double number) { return 0.1 * number; });
    add(size, types.state, [](double number) { return 1e-4 * number; });
    add(size, types.state, [](double number) { return 1e-3 * number * number; });
  }
  TestTensor rate(Shape{1}, DType::kF32, {0.01F});
  TestTensor update = TestTensor::Integer(20);
  CudaCopies copies;
  const bool cuda = device == DeviceKind::kCuda;
  const auto view = [&](TestTensor& tensor) { return cuda ? copies.View(tensor) : tensor.View(); };
  const OpDef& op = BuiltinOps().Get("adam_update");
  std::vector<std::vector<TensorView>> inputs, outputs;
  std::vector<Attributes> attributes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    inputs.push_back({});
    for (size_t k = 0; k < kAdamUpdateInputs.arrays; ++k)
      inputs[i].push_back(view(arrays[kAdamUpdateInputs.arrays * i + k]));
    outputs.push_back({inputs[i][0], inputs[i][2], inputs[i][3]});
    inputs[i].push_back(view(rate));
    inputs[i].push_back(view(update));
    attributes.push_back(op.default_attributes());
    attributes[i].Set("stochastic", int64_t{1});
    attributes[i].Set("seed", int64_t{7});
    attributes[i].Set("stream", static_cast<int64_t>(i));
  }
  const auto run = [&](const Kernel& kernel, CUstream_st* stream) {
    std::vector<KernelCall> calls;
    for (size_t i = 0; i < sizes.size(); ++i) {
      calls.push_back({inputs[i], outputs[i], attributes[i], {}, PoolOf(1), stream});
    }
    if (cuda) return kernel.run_group(calls);
    for (const KernelCall& call : calls) kernel.run(call);
  };
  for (const Kernel& kernel : op.kernels()) {
    if (kernel.name == "AdamUpdateCpu" && !cuda) run(kernel, nullptr);
    if (kernel.name == "AdamUpdateCuda" && cuda) {
      RunOnCuda(CudaLaunch::kGraph, [&](CUstream_st* stream) { run(kernel, stream); });
      copies.Return();
    }
  }
  std::vector<Floats> numbers;
  for (TestTensor& array : arrays) {
    EXPECT_TRUE(array.GuardsIntact());
    numbers.push_back(array.Numbers());
  }
  return numbers;
}

// More tensors than a launch takes, with sizes around those of threads and blocks; a tensor of
// which a block works on several pieces.
TEST(CudaAdamUpdate, GroupsGiveTheBitsOfTheCpu) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no CUDA device";
  constexpr DType kF32 = DType::kF32, kF16 = DType::kF16, kBF16 = DType::kBF16, kQ8 = DType::kQ8;
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < 300; ++i) sizes.push_back(i % 20);
  sizes.insert(sizes.end(), {2047, 2048, 2049, 4104, 5003});
  for (const AdamTypes& types : {AdamTypes{kF32, kF32, kF32}, AdamTypes{kF16, kF16, kF16},
                                 AdamTypes{kBF16, kBF16, kBF16}, AdamTypes{kF16, kF32, kQ8}}) {
    SCOPED_TRACE(Name(types.weight));
    EXPECT_EQ(AfterAdamUpdate(DeviceKind::kCuda, types, sizes),
              AfterAdamUpdate(DeviceKind::kCpu, types, sizes));
  }
  const AdamTypes f16{kF16, kF16, kF16};
  EXPECT_EQ(AfterAdamUpdate(DeviceKind::kCuda, f16, {1'100'003}),
            AfterAdamUpdate(DeviceKind::kCpu, f16, {1'100'003}));
}

TEST(AdamUpdate, RejectsWrongShapesAndSettings) {
  const char* names[] = {
      "",         "'gradient'",       "'first_moment'", "'second_root'", "'learning_rate'",
      "'update'", "'gradient_factor'"};
  for (size_t input = 1; input < std::size(names); ++input) {
    OpCase op_case = WithAdamFactor(AdamCase(Shape{3}));
    op_case.inputs[input] = Shape{4};
    EXPECT_THAT(ShapeError(op_case), HasSubstr(names[input]));
  }
  for (const double beta : {-0.1, 1.0}) {
    EXPECT_THAT(ShapeError(AdamCase(Shape{3}, {{"beta1", beta}})), HasSubstr("beta1 is"));
    EXPECT_THAT(ShapeError(AdamCase(Shape{3}, {{"beta2", beta}})), HasSubstr("beta2 is"));
  }
  EXPECT_THAT(ShapeError(AdamCase(Shape{3}, {{"epsilon", 0.0}})),
              HasSubstr("epsilon is 0, expected above 0"));
  EXPECT_THAT(ShapeError(AdamCase(Shape{3}, {{"stream", int64_t{-1}}})), HasSubstr("stream is -1"));
}

}  // namespace
}  // namespace thimble
