// CUDA kernels with packed tensors (tensor/packed.h): compared with the CPU's kernels on the same
// pools, or with the same kernel on dense weights that are zero where they are not active.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/support/call_kernel.h"
#include "tests/support/case_sample.h"
#include "tests/support/cuda_copies.h"
#include "tests/support/op_inputs.h"
#include "tests/support/packed_pool.h"

namespace thimble {
namespace {

constexpr double kCudaDensities[] = {0, 0.05, 0.2, 0.5, 1};
// The tensor is the second of three in its pools.
constexpr size_t kCudaTensor = 1;

TestPattern CudaTestPattern(const Shape& shape, double density) {
  return TestPattern({261, shape.elements(), 100}, density, /*seed=*/17);
}

std::vector<float> CudaTestNumbers(const Shape& shape, uint32_t stream, double scale = 1) {
  std::vector<float> numbers;
  for (const double normal :
       RandomNormals(/*seed=*/6, stream, static_cast<size_t>(shape.elements()))) {
    numbers.push_back(static_cast<float>(scale * normal));
  }
  return numbers;
}

bool SameBytesEverywhere(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

// ---- Element-wise ops

// Inputs and outputs of an element-wise op: arrays, then scalars.
struct ElementwiseCall {
  std::string_view op, kernel;  // without the device's name
  std::vector<DType> arrays;    // types of the inputs
  std::vector<DType> outputs;
  std::vector<float> floats = {};      // inputs after the arrays
  std::vector<int32_t> integers = {};  // and those after these
  Attributes attributes = {};
};

std::vector<ElementwiseCall> ElementwiseCalls() {
  constexpr DType kF32 = DType::kF32, kF16 = DType::kF16, kBF16 = DType::kBF16, kQ8 = DType::kQ8;
  const Attributes rounding = {
      {"stochastic", int64_t{1}}, {"seed", int64_t{7}}, {"stream", int64_t{3}}};
  Attributes feedback = rounding;
  feedback.Set("feedback_rate", 1e-4);
  return {
      {"sgd_update", "SgdUpdate", {kF32, kF32, kF32}, {kF32, kF32}, {0.1F}},
      {"sgd_update", "SgdUpdate", {kF16, kF16, kF16}, {kF16, kF16}, {0.1F}},
      {"sgd_update", "SgdUpdate", {kBF16, kF32, kQ8}, {kBF16, kQ8}, {0.1F}, {5}, rounding},
      {"sgd_update", "SgdUpdate", {kBF16, kBF16, kBF16}, {kBF16, kBF16}, {0.1F}, {5}, feedback},
      {"sgd_update", "SgdUpdate", {kF32, kF16, kQ8}, {kF32, kQ8}, {0.1F}},
      {"sgd_update_plain", "SgdUpdatePlain", {kF32, kF32}, {kF32}, {0.1F}},
      {"sgd_update_plain", "SgdUpdatePlain", {kBF16, kBF16}, {kBF16}, {0.1F}, {4}, rounding},
      {"sgd_gather", "SgdGather", {kF32, kF32, kF32}, {kF32}, {}, {0}},
      {"sgd_gather", "SgdGather", {kBF16, kBF16, kQ8}, {kQ8}, {}, {2, 9}, rounding},
      {"sgd_apply", "SgdApply", {kF32, kF32}, {kF32}, {0.1F}},
      {"sgd_apply", "SgdApply", {kBF16, kQ8}, {kBF16}, {0.1F}, {4}, rounding},
      {"sgd_apply_feedback",
       "SgdApplyFeedback",
       {kBF16, kF32},
       {kBF16, kF32},
       {0.1F},
       {4},
       feedback},
      {"accumulate", "Accumulate", {kF32, kF32}, {kF32}, {}, {0}},
      {"accumulate", "Accumulate", {kF32, kBF16}, {kF32}, {}, {3}},
      {"accumulate", "Accumulate", {kF16, kF16}, {kF16}, {}, {3}},
  };
}

const Shape kElementwiseShapes[] = {{3, 3, 5, 33}, {16, 3, 3, 16}, {1, 1, 1, 1}, {70, 3, 3, 64}};

// The call's pools, results and scalars.
struct ElementwiseRun {
  ElementwiseRun(const ElementwiseCall& call, const TestPattern& pattern, const Shape& dense_shape)
      : shape(dense_shape) {
    for (size_t i = 0; i < call.arrays.size(); ++i) {
      auto& pool = pools.emplace_back(std::make_unique<TestPool>(pattern, call.arrays[i]));
      pool->Store(kCudaTensor, shape, CudaTestNumbers(shape, static_cast<uint32_t>(i), 0.1));
    }
    for (const DType type : call.outputs) {
      results.push_back(std::make_unique<TestPool>(pattern, type));
    }
    for (const float number : call.floats) {
      scalars.emplace_back(Shape{1}, DType::kF32, std::vector<float>{number});
    }
    for (const int32_t integer : call.integers) scalars.push_back(TestTensor::Integer(integer));
  }
  // The views in host memory, or of copies.
  KernelCallSpec Spec(const ElementwiseCall& call, const std::string& kernel, CudaCopies* copies) {
    KernelCallSpec spec{call.op, kernel, {}, {}, call.attributes};
    const auto add = [&](std::vector<TensorView>& views, TestPool& pool) {
      views.push_back(copies == nullptr ? pool.View(kCudaTensor, shape)
                                        : copies->View(pool, kCudaTensor, shape));
    };
    for (const auto& pool : pools) add(spec.inputs, *pool);
    for (const auto& pool : results) add(spec.outputs, *pool);
    for (TestTensor& scalar : scalars) {
      spec.inputs.push_back(copies == nullptr ? scalar.View() : copies->View(scalar));
    }
    return spec;
  }

  Shape shape;
  std::vector<std::unique_ptr<TestPool>> pools, results;
  std::vector<TestTensor> scalars;
};

// Both devices draw the same words and fuse the same products, so they give the same bits.
TEST(CudaPacked, ElementwiseOpsGiveTheBitsOfTheCpu) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no CUDA device";
  for (const ElementwiseCall& call : ElementwiseCalls()) {
    for (const Shape& shape : kElementwiseShapes) {
      for (const double density : kCudaDensities) {
        const TestPattern pattern = CudaTestPattern(shape, density);
        ElementwiseRun expected(call, pattern, shape);
        const std::string cpu_kernel = std::string(call.kernel) + "Cpu";
        CallKernel(expected.Spec(call, cpu_kernel, nullptr), {});
        ElementwiseRun actual(call, pattern, shape);
        const std::string cuda_kernel = std::string(call.kernel) + "Cuda";
        CudaCopies copies;
        CallKernel(actual.Spec(call, cuda_kernel, &copies), {});
        copies.Return();
        for (size_t i = 0; i < call.outputs.size(); ++i) {
          EXPECT_TRUE(SameBytesEverywhere(actual.results[i]->bytes_and_guards(),
                                          expected.results[i]->bytes_and_guards()))
              << cuda_kernel << ", output " << i << " in " << Name(call.outputs[i]) << ", "
              << ToString(shape) << ", density " << density;
        }
        for (size_t i = 0; i < call.arrays.size(); ++i) {
          EXPECT_TRUE(SameBytesEverywhere(actual.pools[i]->bytes_and_guards(),
                                          expected.pools[i]->bytes_and_guards()));
        }
      }
    }
  }
}

// One group of dense and packed calls, in place.
TEST(CudaPacked, GroupsMixDenseAndPackedTensors) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no CUDA device";
  const Shape shape{40, 3, 3, 20};
  const TestPattern pattern = CudaTestPattern(shape, 0.2);
  const OpDef& op = BuiltinOps().Get("sgd_apply");
  const auto run = [&](DeviceKind device, TestPool& weights, TestPool& momentum,
                       std::vector<TestTensor>& dense) {
    CudaCopies copies;
    const bool cuda = device == DeviceKind::kCuda;
    const auto packed_view = [&](TestPool& pool, size_t tensor, const Shape& own) {
      return cuda ? copies.View(pool, tensor, own) : pool.View(tensor, own);
    };
    const auto view = [&](TestTensor& tensor) {
      return cuda ? copies.View(tensor) : tensor.View();
    };
    TestTensor rate(Shape{1}, DType::kF32, {0.25F});
    std::vector<std::vector<TensorView>> inputs;
    const Shape shapes[] = {Shape{261}, shape, Shape{100}};
    for (size_t tensor = 0; tensor < 3; ++tensor) {
      inputs.push_back({packed_view(weights, tensor, shapes[tensor]),
                        packed_view(momentum, tensor, shapes[tensor]), view(rate)});
      inputs.push_back({view(dense[2 * tensor]), view(dense[2 * tensor + 1]), view(rate)});
    }
    const Attributes attributes = op.default_attributes();
    for (const Kernel& kernel : op.kernels()) {
      if (kernel.name != (cuda ? "SgdApplyCuda" : "SgdApplyCpu")) continue;
      ThreadPool pool(1);
      const auto call_all = [&](CUstream_st* stream) {
        std::vector<KernelCall> calls;
        for (const auto& own : inputs) {
          calls.push_back({own, std::span(own).first(1), attributes, {}, pool, stream});
        }
        if (cuda) return kernel.run_group(calls);
        for (const KernelCall& call : calls) kernel.run(call);
      };
      if (!cuda) return call_all(nullptr);
      RunOnCuda(CudaLaunch::kGraph, call_all);
      copies.Return();
    }
  };
  std::vector<std::vector<float>> results[2];
  for (const DeviceKind device : {DeviceKind::kCpu, DeviceKind::kCuda}) {
    TestPool weights(pattern, DType::kF32);
    TestPool momentum(pattern, DType::kF32);
    const Shape shapes[] = {Shape{261}, shape, Shape{100}};
    std::vector<TestTensor> dense;
    for (size_t tensor = 0; tensor < 3; ++tensor) {
      const auto stream = static_cast<uint32_t>(tensor);
      weights.Store(tensor, shapes[tensor], CudaTestNumbers(shapes[tensor], stream));
      momentum.Store(tensor, shapes[tensor], CudaTestNumbers(shapes[tensor], 3 + stream));
      dense.emplace_back(Shape{77}, DType::kF32, CudaTestNumbers(Shape{77}, 6 + stream));
      dense.emplace_back(Shape{77}, DType::kF32, CudaTestNumbers(Shape{77}, 9 + stream));
    }
    run(device, weights, momentum, dense);
    auto& found = results[device == DeviceKind::kCuda ? 1 : 0];
    for (size_t tensor = 0; tensor < 3; ++tensor) {
      found.push_back(weights.Load(tensor, shapes[tensor]));
      found.push_back(dense[2 * tensor].Numbers());
    }
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(CudaPacked, ChecksTheGradientsThatAreActive) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no CUDA device";
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const Shape& shape : kElementwiseShapes) {
      for (const double density : kCudaDensities) {
        const TestPattern pattern = CudaTestPattern(shape, density);
        TestPool pool(pattern, type);  // other tensors are NaN
        pool.Store(kCudaTensor, shape, CudaTestNumbers(shape, 1));
        float factors[2];
        for (const bool cuda : {false, true}) {
          TestTensor state(Shape{4}, DType::kF32, {8, 1, 0, 0});
          TestTensor dense(Shape{50}, type, CudaTestNumbers(Shape{50}, 2));
          TestTensor factor(Shape{1}, DType::kF32), next(Shape{4}, DType::kF32);
          CudaCopies copies;
          KernelCallSpec spec{"check_gradients",
                              cuda ? "CheckGradientsCuda" : "CheckGradientsCpu",
                              {},
                              {},
                              {{"clip", 1.0}}};
          if (cuda) {
            spec.inputs = {copies.View(state), copies.View(dense),
                           copies.View(pool, kCudaTensor, shape)};
            spec.outputs = {copies.View(factor), copies.View(next)};
          } else {
            spec.inputs = {state.View(), dense.View(), pool.View(kCudaTensor, shape)};
            spec.outputs = {factor.View(), next.View()};
          }
          CallKernel(spec, {});
          if (cuda) copies.Return();
          factors[cuda ? 1 : 0] = factor.Numbers()[0];
        }
        EXPECT_GT(factors[0], 0) << density;
        EXPECT_NEAR(factors[1], factors[0], 1e-6F * factors[0]) << ToString(shape) << density;
      }
    }
  }
}

// ---- Convolutions

struct CudaConvolution {
  int64_t batch, height, width, channels, out_channels, kernel, stride;

  int64_t padding() const { return kernel / 2; }
  Shape x() const { return {batch, height, width, channels}; }
  Shape w() const { return {out_channels, kernel, kernel, channels}; }
  Shape dy() const {
    return {batch, (height + 2 * padding() - kernel) / stride + 1,
            (width + 2 * padding() - kernel) / stride + 1, out_channels};
  }
  Attributes attributes() const {
    return {{"stride", stride}, {"padding", padding()},    {"height", height},
            {"width", width},   {"kernel_height", kernel}, {"kernel_width", kernel}};
  }
};

const std::vector<CudaConvolution> kCudaConvolutions = {
    {2, 5, 7, 3, 16, 3, 1},       // the stem
    {2, 6, 5, 7, 17, 3, 2},       // odd numbers of channels
    {2, 8, 8, 36, 12, 1, 2},      // a shortcut; whole groups of floats, not of 16 bits
    {3, 16, 16, 16, 32, 3, 1},    // more than 16 result channels
    {2, 18, 18, 32, 48, 3, 2},    // a stride
    {1, 6, 6, 104, 72, 3, 1},     // several parts of channels
    {2, 32, 32, 32, 32, 3, 1},    // layers of wrn-28-2, and larger
    {100, 8, 8, 128, 128, 3, 1},  // large tiles
    {130, 16, 16, 64, 64, 3, 1},  // the same, wide
    {4, 8, 8, 160, 320, 3, 2},    // wide kernels, if the weights are dense
    {1, 4, 4, 8, 8, 5, 1},        // a kernel that only some support
};

struct CudaSetting {
  std::string_view kernel;
  DType images, weights;
};
constexpr CudaSetting kCudaSettings[] = {
    {"Short", DType::kF16, DType::kF16},  {"Short", DType::kBF16, DType::kBF16},
    {"Mixed", DType::kBF16, DType::kF32}, {"Tf32", DType::kF32, DType::kF32},
    {"Tf32", DType::kF32, DType::kBF16},  {"Fp32", DType::kF32, DType::kF32},
    {"Plain", DType::kF32, DType::kF32},  {"Plain", DType::kF16, DType::kF32},
};

bool CudaKernelTakes(const std::string& op_name, const std::string& name,
                     const KernelCallSpec& spec, bool has_packed) {
  const OpDef& op = BuiltinOps().Get(op_name);
  Attributes attributes = op.default_attributes();
  for (const auto& [key, value] : spec.attributes.entries()) {
    if (attributes.Find(key) != nullptr) attributes.Set(key, value);
  }
  std::vector<Shape> in_shapes, out_shapes;
  std::vector<DType> in_types, out_types;
  for (const TensorView& view : spec.inputs) {
    in_shapes.push_back(view.shape);
    in_types.push_back(view.dtype);
  }
  for (const TensorView& view : spec.outputs) {
    out_shapes.push_back(view.shape);
    out_types.push_back(view.dtype);
  }
  for (const Kernel& kernel : op.kernels()) {
    if (kernel.name != name) continue;
    return kernel.declines({in_shapes, out_shapes, attributes, in_types, out_types, has_packed})
        .empty();
  }
  return false;
}

bool SameWithin(TestTensor& a, TestTensor& b, float tolerance) {
  const std::vector<float> actual = a.Numbers();
  const std::vector<float> expected = b.Numbers();
  for (size_t i = 0; i < actual.size(); ++i) {
    if (!(std::abs(actual[i] - expected[i]) <= tolerance)) return false;
  }
  return true;
}

// One convolution with dense and with packed weights at input `weight` of the op. The same kernel
// gives the same bits, unless dense weights have another one (wide): then nearly.
void CheckCudaReading(const std::string& op, const std::string& kernel, const CudaConvolution& c,
                      std::vector<TestTensor*> inputs, size_t weight, DType weight_type,
                      const Shape& out_shape, DType out_type, double density) {
  const TestPattern pattern = CudaTestPattern(c.w(), density);
  const std::vector<float> weights = CudaTestNumbers(c.w(), /*stream=*/9, 0.1);
  TestTensor masked(c.w(), weight_type, pattern.Masked(kCudaTensor, weights));
  TestPool pool(pattern, weight_type);
  pool.Store(kCudaTensor, c.w(), weights);
  TestTensor expected(out_shape, out_type);
  TestTensor actual(out_shape, out_type);
  CudaCopies copies;
  KernelCallSpec spec{op, kernel, {}, {copies.View(expected)}, c.attributes()};
  for (size_t i = 0, next = 0; i < inputs.size() + 1; ++i) {
    spec.inputs.push_back(i == weight ? copies.View(masked) : copies.View(*inputs[next++]));
  }
  if (!CudaKernelTakes(op, kernel, spec, false)) return;
  CallKernel(spec, {});
  spec.inputs[weight] = copies.View(pool, kCudaTensor, c.w());
  spec.outputs = {copies.View(actual)};
  CallKernel(spec, {});
  copies.Return();
  const bool exact = c.channels < 64 || kernel.find("Short") == std::string::npos;
  const float unit = out_type == DType::kBF16 ? 0x1p-7F : 0x1p-10F;
  const float tolerance = exact ? 0.0F : unit * std::sqrt(static_cast<float>(c.channels * 9));
  EXPECT_TRUE(SameWithin(actual, expected, tolerance))
      << kernel << ", images in " << Name(out_type) << ", weights " << ToString(c.w()) << " in "
      << Name(weight_type) << ", density " << density;
  EXPECT_TRUE(actual.GuardsIntact());
  EXPECT_TRUE(pool.OthersIntact(kCudaTensor, c.w()));
}

TEST(CudaPacked, ConvolutionsReadTheWeightsThatAreActive) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no CUDA device";
  for (const CudaConvolution& c : kCudaConvolutions) {
    for (const auto& [name, images, weights] : kCudaSettings) {
      TestTensor x(c.x(), images, CudaTestNumbers(c.x(), 1));
      TestTensor dy(c.dy(), images, CudaTestNumbers(c.dy(), 2));
      const auto kernel = [&](const char* op) { return op + std::string(name) + "Cuda"; };
      for (const double density : kCudaDensities) {
        if (!NextCaseRuns()) continue;
        CheckCudaReading("conv2d", kernel("Conv2d"), c, {&x}, 1, weights, c.dy(), images, density);
        CheckCudaReading("conv2d_add", kernel("Conv2dAdd"), c, {&x, &dy}, 1, weights, c.dy(),
                         images, density);
        CheckCudaReading("conv2d_grad_input", kernel("Conv2dGradInput"), c, {&dy}, 0, weights,
                         c.x(), images, density);
      }
    }
  }
}

TEST(CudaPacked, WeightGradientsAreWrittenWhereActive) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no CUDA device";
  for (const CudaConvolution& c : kCudaConvolutions) {
    for (const auto& [name, images, weights] : kCudaSettings) {
      TestTensor x(c.x(), images, CudaTestNumbers(c.x(), 1));
      TestTensor dy(c.dy(), images, CudaTestNumbers(c.dy(), 2));
      TestTensor dense(c.w(), weights);
      const std::string kernel = "Conv2dGradWeight" + std::string(name) + "Cuda";
      CudaCopies copies;
      KernelCallSpec spec{"conv2d_grad_weight",
                          kernel,
                          {copies.View(x), copies.View(dy)},
                          {copies.View(dense)},
                          c.attributes()};
      if (!CudaKernelTakes("conv2d_grad_weight", kernel, spec, false)) continue;
      CallKernel(spec, {});
      copies.Return();
      for (const double density : kCudaDensities) {
        if (!NextCaseRuns()) continue;
        const TestPattern pattern = CudaTestPattern(c.w(), density);
        TestPool pool(pattern, weights);
        CudaCopies pool_copy;
        spec.outputs = {pool_copy.View(pool, kCudaTensor, c.w())};
        CallKernel(spec, {});
        pool_copy.Return();
        EXPECT_EQ(pool.Load(kCudaTensor, c.w()), pattern.Packed(kCudaTensor, dense.Numbers()))
            << kernel << ", images in " << Name(images) << ", weights " << ToString(c.w()) << " in "
            << Name(weights) << ", density " << density;
        EXPECT_TRUE(pool.OthersIntact(kCudaTensor, c.w()));
      }
    }
  }
}

}  // namespace
}  // namespace thimble
