// conv2d and its gradients: kernels compared with references, the gradient rule with the complex
// step, wrong shapes with their messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/case_draw.h"
#include "tests/support/cuda_memory.h"
#include "tests/support/emulated_tiles.h"
#include "tests/support/kernel_run.h"
#include "tests/support/op_check.h"
#include "tests/support/op_inputs.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/grad/differentiate.h"
#include "thimble/graph/append_node.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

// Members that are not named keep their defaults.
OpCase Conv2dCase(std::string op, std::vector<Shape> inputs, Attributes attributes = {}) {
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
    return Conv2dCase("conv2d", {x(), w()}, {{"stride", stride}, {"padding", padding}});
  }
  OpCase ForwardAdd() const {
    return Conv2dCase("conv2d_add", {x(), w(), dy()}, {{"stride", stride}, {"padding", padding}});
  }
  OpCase GradWeight() const {
    return Conv2dCase("conv2d_grad_weight", {x(), dy()},
                      {{"stride", stride},
                       {"padding", padding},
                       {"kernel_height", kernel_height},
                       {"kernel_width", kernel_width}});
  }
  OpCase GradInput() const {
    OpCase op_case = Conv2dCase(
        "conv2d_grad_input", {w(), dy()},
        {{"stride", stride}, {"padding", padding}, {"height", height}, {"width", width}});
    // With a stride some pixels are sums of many products and others of none.
    const int64_t taps = ((kernel_height - 1) / stride + 1) * ((kernel_width - 1) / stride + 1);
    op_case.shared_sum_size = static_cast<double>(std::max<int64_t>(1, 2 * taps * out_channels));
    return op_case;
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
    {2, 1, 33, 5, 17, 1, 5, 1, 3},   // a single line, padding to spare
    {1, 13, 1, 17, 33, 5, 1, 2, 2},  // a single column; lines that only padding reaches
    {2, 13, 2, 1, 5, 2, 2, 1, 3},    // padding larger than the kernel: outputs that read nothing
    {1, 3, 13, 33, 1, 1, 1, 1, 2},   // taps side by side with the image, and padding around
    {1, 1, 2, 1, 1, 1, 1, 1, 300},   // chunks of lines that begin right of the image
    {1, 11, 1, 3, 1, 3, 3, 1, 4},    // the last lines, which dw's vectors reach into, are left out
    {1, 4, 33, 9, 48, 3, 2, 3, 0},   // nothing reaches over the sides
    {3, 5, 13, 16, 32, 1, 1, 1, 0},  // pixels one by one, across the lines
    {2, 2, 300, 8, 16, 3, 3, 1, 1},  // longer lines than a chunk
    {5, 3, 3, 12, 40, 3, 3, 1, 1},   // blocks of lines across the images
    {2, 40, 2, 4, 1, 3, 3, 1, 1},    // as many lines as a block holds; vectors beyond the last line
    {1, 11, 11, 2, 3, 3, 3, 5, 1},   // more phases than are worked on together
    {1, 9, 200, 3, 20, 3, 5, 1, 3},  // few channels, and lines too long to pad
    {1, 6, 6, 100, 70, 3, 3, 1, 1},  // regions of channels where scratch is little
    {2, 17, 18, 40, 24, 3, 3, 1, 1},   // tiles of pixels with a rest, parts of channels with one
    {5, 8, 8, 32, 72, 3, 3, 1, 1},     // several images in a tile, and one left over
    {2, 19, 20, 24, 40, 3, 3, 2, 1},   // the same with a stride
    {22, 5, 9, 36, 68, 3, 3, 1, 1},    // more tiles than a GPU has multiprocessors
    {44, 5, 2, 36, 68, 3, 3, 1, 1},    // the same where images are narrow
    {9, 32, 33, 8, 8, 3, 3, 1, 1},     // several clusters of a GPU's weight gradient
    {40, 1, 9, 72, 128, 3, 3, 1, 1},   // the GPU's largest tiles of 16-bit factors
    {160, 1, 2, 72, 128, 3, 3, 1, 1},  // the same where images are narrow
    {130, 1, 9, 72, 24, 3, 3, 1, 1},   // and where there are few result channels
    {2, 7, 24, 16, 48, 3, 3, 1, 1},    // bf16 in tiles of a CPU: whole and half ones, a single line
    {3, 5, 33, 16, 16, 3, 3, 1, 1},    // tiles of 11 pixels
    {2, 9, 18, 32, 32, 3, 3, 2, 1},    // the same with a stride
};

// Calls of training wide residual networks and larger ones.
const std::vector<Convolution> kUsualConvolutions = {
    {100, 32, 32, 3, 16, 3, 3, 1, 1},  {100, 32, 32, 16, 32, 3, 3, 1, 1},
    {100, 32, 32, 32, 32, 3, 3, 1, 1}, {100, 16, 16, 64, 64, 3, 3, 1, 1},
    {100, 8, 8, 128, 128, 3, 3, 1, 1}, {10, 32, 32, 32, 64, 3, 3, 2, 1},
    {1, 32, 32, 32, 64, 1, 1, 2, 0},   {100, 32, 32, 16, 32, 1, 1, 1, 0},
    {4, 224, 224, 64, 64, 3, 3, 1, 1}, {4, 7, 7, 512, 512, 3, 3, 1, 1},
    {4, 224, 224, 3, 64, 7, 7, 2, 3},
};

// Pairs of an output position and a tap that are inside the image, along one axis.
int64_t PairsInside(int64_t size, int64_t kernel, int64_t stride, int64_t padding) {
  int64_t pairs = 0;
  for (int64_t i = 0; i <= (size + 2 * padding - kernel) / stride; ++i) {
    const int64_t first = i * stride - padding;
    pairs += std::max<int64_t>(0, std::min(first + kernel, size) - std::max<int64_t>(first, 0));
  }
  return pairs;
}

// Approximate number of steps of the reference.
int64_t Work(const Convolution& c) {
  const int64_t pairs = c.batch * PairsInside(c.height, c.kernel_height, c.stride, c.padding) *
                        PairsInside(c.width, c.kernel_width, c.stride, c.padding);
  const int64_t pixels = c.batch * c.dy()[1] * c.dy()[2];
  return pairs * c.channels * c.out_channels +
         pixels * (c.out_channels + c.kernel_height * c.kernel_width);
}

int64_t& Largest(std::initializer_list<int64_t*> numbers) {
  return **std::max_element(numbers.begin(), numbers.end(),
                            [](const int64_t* a, const int64_t* b) { return *a < *b; });
}

// Reduces the case until it is fast: channels first, then windows, then the image.
Convolution Affordable(Convolution c) {
  constexpr int64_t kMostWork = 600000;
  while (Work(c) > kMostWork) {
    int64_t& channels = Largest({&c.channels, &c.out_channels, &c.batch});
    int64_t& window = Largest({&c.kernel_height, &c.kernel_width});
    int64_t& larger = channels > 4 ? channels
                      : window > 1 ? window
                                   : Largest({&c.height, &c.width});
    if (larger > 1) {
      larger /= 2;
    } else if (channels > 1) {
      channels /= 2;
    } else {
      c.padding /= 2;
    }
    c.kernel_height = std::min(c.kernel_height, c.height + 2 * c.padding);
    c.kernel_width = std::min(c.kernel_width, c.width + 2 * c.padding);
  }
  return c;
}

// Mostly up to the kernel's size, sometimes far beyond it.
int64_t RandomPadding(CaseDraw& draw) {
  return draw.OneIn(12)  ? draw.Between(100, 300)
         : draw.OneIn(3) ? draw.Between(0, 60)
                         : draw.Between(0, 4);
}

Convolution RandomConvolution(CaseDraw& draw) {
  Convolution c{};
  c.batch = draw.OneIn(24) ? 0 : draw.Between(1, 3);
  c.height = draw.OneIn(4) ? 1 : draw.Between(1, 40);
  c.width = draw.OneIn(8) ? 1 : draw.Between(1, 40);
  c.channels = draw.OneIn(40) ? 0 : draw.Size(70);
  c.out_channels = draw.OneIn(40) ? 0 : draw.Size(70);
  c.kernel_height = draw.Between(1, 7);
  c.kernel_width = draw.OneIn(3) ? draw.Between(1, 7) : c.kernel_height;
  c.stride = draw.OneIn(24) ? draw.Between(5, 50) : draw.OneIn(2) ? 1 : draw.Between(1, 4);
  c.padding = RandomPadding(draw);
  if (draw.OneIn(4)) {  // accepted by Winograd
    c.kernel_height = c.kernel_width = 3;
    c.stride = 1;
    c.padding = draw.Between(0, 2);
    c.channels = 7 + draw.Size(60);
    c.out_channels = 7 + draw.Size(60);
  }
  if (draw.OneIn(3)) {  // whole groups of numbers of 16 bits
    c.channels = 8 * draw.Between(1, 12);
    c.out_channels = 8 * draw.Between(1, 12);
  }
  c.kernel_height = std::min(c.kernel_height, c.height + 2 * c.padding);
  c.kernel_width = std::min(c.kernel_width, c.width + 2 * c.padding);
  return Affordable(c);
}

}  // namespace

std::vector<OpCase> Conv2dCases() {
  std::vector<OpCase> cases;
  for (const Convolution& c : kConvolutions) {
    cases.insert(cases.end(), {c.Forward(), c.ForwardAdd(), c.GradWeight(), c.GradInput()});
  }
  return cases;
}

OpCase Random_conv2d(CaseDraw& draw) { return RandomConvolution(draw).Forward(); }
OpCase Random_conv2d_add(CaseDraw& draw) { return RandomConvolution(draw).ForwardAdd(); }
OpCase Random_conv2d_grad_weight(CaseDraw& draw) { return RandomConvolution(draw).GradWeight(); }
OpCase Random_conv2d_grad_input(CaseDraw& draw) { return RandomConvolution(draw).GradInput(); }

namespace {

TEST(Conv2dTest, Gradient) {
  for (const Convolution& c : std::vector<Convolution>{{2, 4, 5, 3, 4, 3, 3, 1, 1},
                                                       {1, 5, 4, 2, 3, 3, 2, 2, 1},
                                                       {2, 3, 3, 2, 2, 1, 1, 2, 0},
                                                       {1, 6, 6, 1, 2, 5, 5, 3, 2}}) {
    CheckGradient(c.Forward());
    CheckGradient(c.ForwardAdd());
  }
}

// The default CPU kernel.
const Kernel& DefaultKernel(const OpDef& op) {
  return *std::find_if(op.kernels().begin(), op.kernels().end(), [](const Kernel& kernel) {
    return kernel.device == DeviceKind::kCpu && kernel.option.empty();
  });
}

size_t ScratchBytes(const OpCase& op_case, const KernelLimits& limits) {
  const PreparedCase prepared(op_case);
  return DefaultKernel(prepared.op).scratch_bytes(prepared.call(), limits);
}

TEST(Conv2dTest, ScratchStaysWithinItsLimit) {
  for (const Convolution& c : kUsualConvolutions) {
    for (const OpCase& op_case : {c.Forward(), c.GradWeight(), c.GradInput()}) {
      for (int threads : {1, 2, 16}) {
        for (size_t kib : {16, 64, 1024}) {
          const size_t bytes = ScratchBytes(op_case, {threads, kib * 1024});
          EXPECT_LE(bytes, static_cast<size_t>(threads) * kib * 1024)
              << ToString(op_case) << ", " << threads << " threads with " << kib << " KiB each";
          EXPECT_EQ(bytes % 64, 0U);
        }
      }
    }
  }
}

void CheckSameBitsWithAnyLimits(const OpCase& op_case) {
  const PreparedCase prepared(op_case);
  const auto inputs = RandomInputs(prepared, 1.0);
  const Kernel& kernel = DefaultKernel(prepared.op);
  const auto first = RunKernel(prepared, kernel, inputs, {});
  for (int threads : {1, 8}) {
    // The last one is much too small: the smallest blocks are used.
    for (size_t kib : {1024, 64, 16, 1}) {
      const KernelRunOptions options{.threads = threads, .scratch_bytes_per_thread = kib * 1024};
      EXPECT_TRUE(RunKernel(prepared, kernel, inputs, options) == first)
          << ToString(op_case) << ", " << threads << " threads with " << kib << " KiB each";
    }
  }
}

const std::vector<Convolution> kDividedConvolutions = {{3, 12, 15, 40, 70, 3, 3, 1, 1},
                                                       {2, 17, 13, 3, 33, 5, 5, 1, 2},
                                                       {3, 16, 16, 32, 64, 3, 3, 2, 1},
                                                       {1, 20, 50, 130, 40, 3, 3, 2, 1},
                                                       {9, 8, 8, 64, 128, 1, 1, 2, 0}};

TEST(Conv2dTest, SameBitsForManyThreadsAndAnyScratch) {
  for (const Convolution& c : kDividedConvolutions) {
    for (const OpCase& op_case : {c.Forward(), c.GradWeight(), c.GradInput()}) {
      CheckSameBitsWithAnyLimits(op_case);
    }
  }
}

// Sums that are stored in f32 may be divided further.
TEST(Conv2dTest, TheSameInTiles) {
  const EmulatedTiles tiles;
  if (!PinSimdTarget("amx").ok()) GTEST_SKIP() << "this machine does not multiply pairs";
  constexpr DType kBF16 = DType::kBF16;
  for (const Convolution& c : kDividedConvolutions) {
    for (OpCase op_case : {c.Forward(), c.GradWeight(), c.GradInput()}) {
      for (const DType sums : {kBF16, DType::kF32}) {
        op_case.number_types = {kBF16, kBF16, sums};
        CheckSameBitsWithAnyLimits(op_case);
      }
    }
  }
}

// Calls of 16-bit numbers that a GPU with instructions for warpgroups computes with them. They are
// large, because the copy engine reads no images of less than 128 KiB, and take turns with the
// types.
TEST(CudaWideConvolutions, AgreeWithReference) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no CUDA device";
  bool turn = false;
  const auto check = [&](OpCase op_case) {
    turn = !turn;
    op_case.number_types = {turn ? DType::kF16 : DType::kBF16};
    CheckCudaKernels(op_case);
  };
  for (const Convolution& c : std::vector<Convolution>{
           {4, 16, 16, 64, 64, 3, 3, 1, 1},   // whole tiles
           {3, 19, 20, 96, 160, 3, 3, 1, 1},  // pixels with a rest, half a part of channels
           {2, 24, 23, 64, 224, 3, 3, 1, 3},  // windows that read padding only
           {4, 8, 8, 256, 128, 3, 3, 1, 1},   // few tiles: clusters
           {1, 7, 148, 64, 64, 3, 1, 1, 1},   // a kernel that is not square
           {8, 21, 22, 64, 128, 3, 3, 2, 1},  // a stride
           {4, 33, 33, 32, 64, 3, 3, 2, 1},   // the same with few channels
           {8, 21, 22, 96, 64, 1, 1, 2, 0},   // a shortcut: three of four pixels get no gradient
           {2, 16, 40, 128, 64, 1, 1, 1, 0}}) {
    for (const OpCase& op_case : {c.ForwardAdd(), c.GradWeight(), c.GradInput()}) check(op_case);
  }
  // Several copies of dw in scratch.
  check(Convolution{17, 32, 32, 64, 64, 3, 3, 1, 1}.GradWeight());
}

// Names of the op's CUDA kernels that accept the call. This needs no GPU.
std::vector<std::string> CudaKernelsFor(const OpCase& op_case) {
  const PreparedCase prepared(op_case);
  std::vector<std::string> names;
  for (const Kernel& kernel : prepared.op.kernels()) {
    if (kernel.device != DeviceKind::kCuda) continue;
    if (kernel.declines(prepared.call()).empty()) names.emplace_back(kernel.name);
  }
  return names;
}

TEST(Conv2dTest, CudaKernelsDeclineWhatTheyCannotCount) {
  const Convolution usual{2, 8, 8, 4, 8, 3, 3, 1, 1};
  if (CudaKernelsFor(usual.Forward()).empty()) GTEST_SKIP() << "built without CUDA";
  const std::vector<std::string> plain = {"Conv2dGradWeightPlainFp32Cuda",
                                          "Conv2dGradWeightPlainCuda"};
  EXPECT_EQ(CudaKernelsFor(usual.GradWeight()).size(), 4U);
  // More groups of channels than a grid can have.
  EXPECT_EQ(CudaKernelsFor(Convolution{1, 1, 1, 1, 1 << 22, 1, 1, 1, 0}.GradWeight()), plain);
  EXPECT_EQ(CudaKernelsFor(Convolution{1, 1, 1, 1 << 22, 1, 1, 1, 1, 0}.GradWeight()), plain);
  // No channels.
  EXPECT_EQ(CudaKernelsFor(Convolution{2, 8, 8, 0, 8, 3, 3, 1, 1}.GradWeight()), plain);
  EXPECT_EQ(CudaKernelsFor(Convolution{2, 8, 8, 4, 0, 3, 3, 1, 1}.GradWeight()), plain);
  // Sizes beyond 32 bits.
  const Convolution large{int64_t{1} << 31, 1, 1, 1, 1, 1, 1, 1, 0};
  for (const OpCase& op_case :
       {large.Forward(), large.ForwardAdd(), large.GradWeight(), large.GradInput()}) {
    EXPECT_THAT(CudaKernelsFor(op_case), testing::IsEmpty()) << ToString(op_case);
  }
}

// The best kernel without an option. This needs no GPU.
std::string CudaKernelFor(OpCase op_case, std::vector<DType> types) {
  op_case.number_types = std::move(types);
  const PreparedCase prepared(op_case);
  for (const Kernel& kernel : prepared.op.kernels()) {
    if (kernel.device != DeviceKind::kCuda || !kernel.option.empty()) continue;
    if (kernel.declines(prepared.call()).empty()) return std::string(kernel.name);
  }
  return "";
}

TEST(Conv2dTest, CudaKernelsByStoredTypes) {
  const Convolution c{2, 8, 8, 4, 8, 3, 3, 1, 1};
  if (CudaKernelsFor(c.Forward()).empty()) GTEST_SKIP() << "built without CUDA";
  constexpr DType kF32 = DType::kF32;
  for (const DType type : {DType::kF16, DType::kBF16}) {
    EXPECT_EQ(CudaKernelFor(c.Forward(), {type}), "Conv2dShortCuda");
    EXPECT_EQ(CudaKernelFor(c.Forward(), {type, kF32, type}), "Conv2dMixedCuda");
    EXPECT_EQ(CudaKernelFor(c.ForwardAdd(), {type}), "Conv2dAddShortCuda");
    EXPECT_EQ(CudaKernelFor(c.ForwardAdd(), {type, kF32, type, type}), "Conv2dAddMixedCuda");
    EXPECT_EQ(CudaKernelFor(c.GradInput(), {type}), "Conv2dGradInputShortCuda");
    EXPECT_EQ(CudaKernelFor(c.GradInput(), {kF32, type, type}), "Conv2dGradInputMixedCuda");
    EXPECT_EQ(CudaKernelFor(c.GradWeight(), {type}), "Conv2dGradWeightShortCuda");
    EXPECT_EQ(CudaKernelFor(c.GradWeight(), {type, type, kF32}), "Conv2dGradWeightShortCuda");
  }
  // Neither type of 16 bits has all numbers of the other, but TF32 has those of both.
  EXPECT_EQ(CudaKernelFor(c.Forward(), {DType::kF16, DType::kBF16, kF32}), "Conv2dTf32Cuda");
  EXPECT_EQ(CudaKernelFor(c.Forward(), {kF32}), "Conv2dTf32Cuda");
}

// Few samples need little scratch: the sums of a cluster are added in shared memory.
TEST(Conv2dTest, CudaWeightGradientsOfShortNumbersNeedLittleScratch) {
  const auto scratch = [](const Convolution& c, DType type) {
    OpCase op_case = c.GradWeight();
    op_case.number_types = {type};
    const PreparedCase prepared(op_case);
    for (const Kernel& kernel : prepared.op.kernels()) {
      const bool takes_it = kernel.device == DeviceKind::kCuda && kernel.option.empty() &&
                            kernel.declines(prepared.call()).empty();
      if (takes_it) return kernel.scratch_bytes(prepared.call(), {});
    }
    return size_t{0};
  };
  if (CudaKernelsFor(kConvolutions[0].Forward()).empty()) GTEST_SKIP() << "built without CUDA";
  const Convolution early{10, 32, 32, 32, 32, 3, 3, 1, 1};
  const Convolution late{10, 8, 8, 128, 128, 3, 3, 1, 1};
  EXPECT_EQ(scratch(early, DType::kF16), 147456U);  // f32: 2,949,120
  EXPECT_EQ(scratch(late, DType::kF16), 0U);        // f32: 5,898,240
  EXPECT_EQ(scratch(late, DType::kF32), 5898240U);
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
  EXPECT_EQ(ShapeError(stride), "stride 0, expected 1 to 1048576");
  stride.attributes.Set("stride", int64_t{1} << 32);
  EXPECT_EQ(ShapeError(stride), "stride 4294967296, expected 1 to 1048576");
  OpCase padding = good.Forward();
  padding.attributes.Set("padding", int64_t{-1});
  EXPECT_EQ(ShapeError(padding), "padding -1, expected 0 to 1048576");
}

TEST(Conv2dTest, GradientsCheckTheirShapes) {
  const Convolution good{2, 8, 8, 3, 16, 3, 3, 1, 1};
  OpCase add = good.ForwardAdd();
  add.inputs[2] = {2, 8, 8, 3};
  EXPECT_THAT(ShapeError(add), testing::HasSubstr("other"));
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

// Backward nodes of a convolution if these inputs need a gradient.
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
