// Convolutions whose weights are packed (tensor/packed.h), compared with dense weights that are
// zero where they are not active: the same bits on every target.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/support/call_kernel.h"
#include "tests/support/emulated_tiles.h"
#include "tests/support/packed_pool.h"
#include "thimble/device/cpu/simd_target.h"

namespace thimble {
namespace {

struct PackedConvolution {
  int64_t batch, height, width, channels, out_channels, kernel, stride;

  int64_t padding() const { return kernel / 2; }
  Shape x() const { return {batch, height, width, channels}; }
  Shape w() const { return {out_channels, kernel, kernel, channels}; }
  Shape dy() const {
    return {batch, (height + 2 * padding() - kernel) / stride + 1,
            (width + 2 * padding() - kernel) / stride + 1, out_channels};
  }
  // Those of all ops; each takes the ones it has.
  Attributes attributes() const {
    return {{"stride", stride}, {"padding", padding()},    {"height", height},
            {"width", width},   {"kernel_height", kernel}, {"kernel_width", kernel}};
  }
};

const std::vector<PackedConvolution> kPackedConvolutions = {
    {2, 5, 7, 3, 16, 3, 1},     // the stem
    {2, 6, 5, 7, 17, 3, 2},     // odd numbers of channels
    {2, 8, 8, 33, 7, 1, 2},     // a shortcut
    {3, 7, 7, 20, 40, 1, 1},    // pixels one by one
    {3, 16, 16, 16, 32, 3, 1},  // several parts
    {2, 9, 18, 32, 48, 3, 2},   // tiles
    {1, 6, 6, 100, 70, 3, 1},   // regions of channels where scratch is little
    {0, 4, 4, 5, 6, 3, 1},      // an empty batch
};

const std::vector<KernelLimits> kPackedLimits = {
    {1, size_t{1} << 20}, {2, size_t{1} << 15}, {3, size_t{1} << 20}, {3, 1}};

// The tensor is the second of three in its pools.
constexpr size_t kPackedTensor = 1;

TestPattern PatternOf(const Shape& shape, double density) {
  return TestPattern({261, shape.elements(), 100}, density, /*seed=*/11);
}

bool SameBytes(const TensorView& a, const TensorView& b) {
  return a.size_bytes() == b.size_bytes() &&
         (a.size_bytes() == 0 || std::memcmp(a.data, b.data, a.size_bytes()) == 0);
}

bool SamePackedBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

struct PackedSetting {
  double density;  // of active elements
  DType images, weights;
};
constexpr PackedSetting kPackedSettings[] = {
    {0.0, DType::kF32, DType::kF32},   {0.2, DType::kF32, DType::kF32},
    {1.0, DType::kF32, DType::kF32},   {0.05, DType::kF16, DType::kF16},
    {0.2, DType::kBF16, DType::kBF16}, {0.5, DType::kBF16, DType::kBF16},
    {0.5, DType::kBF16, DType::kF32},
};

// Calls body for every target and setting.
template <class Body>
void ForEachPackedSetting(const Body& body) {
  const EmulatedTiles tiles;
  for (const std::string& target : SupportedSimdTargets()) {
    ASSERT_TRUE(PinSimdTarget(target).ok());
    for (const PackedSetting& setting : kPackedSettings) {
      // Such targets otherwise run the code of the next one.
      if (MultipliesPairs() && setting.images != DType::kBF16) continue;
      SCOPED_TRACE(testing::Message()
                   << target << ", density " << setting.density << ", images in "
                   << Name(setting.images) << ", weights in " << Name(setting.weights));
      body(setting);
    }
  }
}

// The op with dense and with packed weights at input `weight`.
void CheckReading(KernelCallSpec spec, size_t weight, double density) {
  const TensorView dense = spec.inputs[weight];
  const TestPattern pattern = PatternOf(dense.shape, density);
  const std::vector<float> weights = HashedNumbers(dense.shape.elements(), /*stream=*/9);
  TestTensor masked(dense.shape, dense.dtype, pattern.Masked(kPackedTensor, weights));
  spec.inputs[weight] = masked.View();
  const TensorView out = spec.outputs[0];
  TestTensor expected(out.shape, out.dtype);
  spec.outputs = {expected.View()};
  CallKernel(spec, {});
  TestPool pool(pattern, dense.dtype);
  pool.Store(kPackedTensor, dense.shape, weights);
  spec.inputs[weight] = pool.View(kPackedTensor, dense.shape);
  for (const KernelLimits& limits : kPackedLimits) {
    TestTensor actual(out.shape, out.dtype);
    spec.outputs = {actual.View()};
    CallKernel(spec, limits);
    EXPECT_TRUE(SameBytes(actual.View(), expected.View()))
        << spec.op << ", " << limits.threads << " threads, " << limits.scratch_bytes_per_thread
        << " bytes of scratch, weights " << ToString(dense.shape);
    EXPECT_TRUE(actual.GuardsIntact());
  }
  EXPECT_TRUE(pool.OthersIntact(kPackedTensor, dense.shape));
}

TEST(PackedConv2d, ReadsTheWeightsThatAreActive) {
  ForEachPackedSetting([](const PackedSetting& setting) {
    const auto& [density, images, weights] = setting;
    for (const PackedConvolution& c : kPackedConvolutions) {
      TestTensor x(c.x(), images, HashedNumbers(c.x().elements(), 1));
      TestTensor dy(c.dy(), images, HashedNumbers(c.dy().elements(), 2));
      const TensorView w{nullptr, weights, c.w()};
      const TensorView y{nullptr, images, c.dy()};
      const TensorView dx{nullptr, images, c.x()};
      CheckReading({"conv2d", "Conv2dCpu", {x.View(), w}, {y}, c.attributes()}, 1, density);
      CheckReading({"conv2d_add", "Conv2dAddCpu", {x.View(), w, dy.View()}, {y}, c.attributes()}, 1,
                   density);
      CheckReading(
          {"conv2d_grad_input", "Conv2dGradInputCpu", {w, dy.View()}, {dx}, c.attributes()}, 0,
          density);
    }
  });
}

// Packed dw, compared with the dense one.
TEST(PackedConv2d, WritesTheGradientsThatAreActive) {
  ForEachPackedSetting([](const PackedSetting& setting) {
    for (const PackedConvolution& c : kPackedConvolutions) {
      TestTensor x(c.x(), setting.images, HashedNumbers(c.x().elements(), 1));
      TestTensor dy(c.dy(), setting.images, HashedNumbers(c.dy().elements(), 2));
      TestTensor dense(c.w(), setting.weights);
      KernelCallSpec spec{"conv2d_grad_weight",
                          "Conv2dGradWeightCpu",
                          {x.View(), dy.View()},
                          {dense.View()},
                          c.attributes()};
      CallKernel(spec, {});
      const TestPattern pattern = PatternOf(c.w(), setting.density);
      const std::vector<float> expected = pattern.Packed(kPackedTensor, dense.Numbers());
      for (const KernelLimits& limits : kPackedLimits) {
        TestPool pool(pattern, setting.weights);
        spec.outputs = {pool.View(kPackedTensor, c.w())};
        CallKernel(spec, limits);
        EXPECT_TRUE(SamePackedBits(pool.Load(kPackedTensor, c.w()), expected))
            << limits.threads << " threads, " << limits.scratch_bytes_per_thread
            << " bytes of scratch, weights " << ToString(c.w());
        EXPECT_TRUE(pool.OthersIntact(kPackedTensor, c.w()));
      }
    }
  });
}

size_t PackedScratchBytes(const PackedConvolution& c, const KernelLimits& limits) {
  const std::vector<Shape> inputs = {c.x(), c.dy()};
  const std::vector<Shape> outputs = {c.w()};
  const Attributes attributes = c.attributes();
  for (const Kernel& kernel : BuiltinOps().Get("conv2d_grad_weight").kernels()) {
    if (kernel.name != "Conv2dGradWeightCpu") continue;
    return kernel.scratch_bytes(
        {.inputs = inputs, .outputs = outputs, .attributes = attributes, .has_packed = true},
        limits);
  }
  return 0;
}

// A range of the gradient is in scratch, but never all of it.
TEST(PackedConv2d, ScratchOfGradientsStaysWithinItsLimit) {
  for (const PackedConvolution& c : std::vector<PackedConvolution>{{100, 32, 32, 32, 32, 3, 1},
                                                                   {100, 16, 16, 64, 64, 3, 1},
                                                                   {100, 8, 8, 128, 128, 3, 1},
                                                                   {4, 7, 7, 512, 512, 3, 1}}) {
    for (const int threads : {1, 2, 16}) {
      for (const size_t kib : {size_t{64}, size_t{1024}}) {
        const auto limit = static_cast<size_t>(threads) * kib * 1024;
        // 16 channels are the smallest range.
        const auto least = static_cast<size_t>(16 * c.w().elements() / c.out_channels) * 4;
        if (least + 32 * 1024 > limit) continue;
        const size_t bytes = PackedScratchBytes(c, {threads, kib * 1024});
        EXPECT_LE(bytes, limit) << ToString(c.w()) << ", " << threads << " threads";
        EXPECT_EQ(bytes % 64, 0U);
      }
    }
  }
  // All of dw: 9,437,184 bytes.
  EXPECT_LE(PackedScratchBytes({4, 7, 7, 512, 512, 3, 1}, {2, size_t{1} << 20}), 1000000U);
}

TEST(PackedConv2d, OtherKernelsDecline) {
  const PackedConvolution c{2, 8, 8, 16, 16, 3, 1};
  const std::vector<Shape> inputs = {c.x(), c.w()};
  const std::vector<Shape> outputs = {c.dy()};
  const OpDef& op = BuiltinOps().Get("conv2d");
  const OpCall call{.inputs = inputs,
                    .outputs = outputs,
                    .attributes = op.default_attributes(),
                    .has_packed = true};
  for (const Kernel& kernel : op.kernels()) {
    if (kernel.device != DeviceKind::kCpu) continue;
    EXPECT_EQ(kernel.declines(call).empty(), kernel.name == "Conv2dCpu") << kernel.name;
  }
}

}  // namespace
}  // namespace thimble
