#include "thimble/graph/op_def.h"

#include <gtest/gtest.h>

#include "tests/support/toy_ops.h"
#include "thimble/device/cpu/thread_pool.h"

namespace thimble {

// As in ops/: in builds without CUDA there is no definition of a CUDA kernel.
struct PlantedCuda {
  static std::string_view Declines(const OpCall& call);
  static void Run(const KernelCall& call);
};
#ifdef THIMBLE_WITH_CUDA
std::string_view PlantedCuda::Declines(const OpCall& /*call*/) { return "never"; }
void PlantedCuda::Run(const KernelCall& /*call*/) {}
constexpr bool kWithCuda = true;
#else
constexpr bool kWithCuda = false;
#endif

namespace {

struct PlainKernel {
  static void Run(const KernelCall& /*call*/) {}
};

struct PickyKernel : PlainKernel {
  static constexpr std::string_view kOption = "picky";
  static std::string_view Declines(const OpCall& /*call*/) { return "too odd"; }
  static size_t ScratchBytes(const OpCall& /*call*/, const KernelLimits& limits) {
    return 8 * static_cast<size_t>(limits.threads);
  }
};

TEST(OpDef, KnowsItsPorts) {
  const OpRegistry ops = ToyOps();
  const OpDef& multiply = ops.Get("multiply");
  EXPECT_EQ(multiply.InputIndex("b"), 1U);
  EXPECT_EQ(multiply.OutputIndex("y"), 0U);
  EXPECT_EQ(ops.Get("count").outputs()[0].dtype, DType::kI32);
}

TEST(OpDef, ReusesOnlyWhatItAllows) {
  const OpRegistry ops = ToyOps();
  EXPECT_TRUE(ops.Get("scale").MayReuse(0, 0));
  EXPECT_FALSE(ops.Get("multiply").MayReuse(0, 0));
}

TEST(OpDef, ReferenceIsTheLastKernel) {
  const OpRegistry ops = ToyOps();
  const Kernel& kernel = ops.Get("multiply").kernels().back();
  EXPECT_EQ(kernel.name, "reference");
  float a[] = {2, 3};
  float b[] = {5, 7};
  float y[] = {0, 0};
  const TensorView inputs[] = {{a, DType::kF32, Shape{2}}, {b, DType::kF32, Shape{2}}};
  const TensorView outputs[] = {{y, DType::kF32, Shape{2}}};
  ThreadPool pool(1);
  const Attributes attributes;
  kernel.run({inputs, outputs, attributes, {}, pool});
  EXPECT_EQ(y[0], 10);
  EXPECT_EQ(y[1], 21);
}

TEST(OpDef, KernelsKeepTheirOrder) {
  const OpDef op =
      OpDef("op").CpuKernel<PickyKernel>("PickyKernel").CpuKernel<PlainKernel>("PlainKernel");
  ASSERT_EQ(op.kernels().size(), 2U);
  const Kernel& picky = op.kernels()[0];
  const Kernel& plain = op.kernels()[1];
  const Attributes attributes;
  const OpCall call{{}, {}, attributes};
  EXPECT_EQ(picky.name, "PickyKernel");
  EXPECT_EQ(picky.device, DeviceKind::kCpu);
  EXPECT_EQ(picky.option, "picky");
  EXPECT_EQ(picky.declines(call), "too odd");
  EXPECT_EQ(picky.scratch_bytes(call, {.threads = 3}), 24U);
  EXPECT_EQ(plain.name, "PlainKernel");
  EXPECT_EQ(plain.option, "");
  EXPECT_EQ(plain.declines(call), "");
  EXPECT_EQ(plain.scratch_bytes(call, {}), 0U);
}

TEST(OpDef, KernelsOfCudaVanishWithoutIt) {
  const OpDef op =
      OpDef("op").CudaKernel<PlantedCuda>("PlantedCuda").CpuKernel<PlainKernel>("PlainKernel");
  EXPECT_EQ(op.kernels().size(), kWithCuda ? 2U : 1U);
  EXPECT_EQ(op.kernels().back().name, "PlainKernel");
  EXPECT_EQ(op.kernels().front().name, kWithCuda ? "PlantedCuda" : "PlainKernel");
  EXPECT_EQ(op.kernels().front().device, kWithCuda ? DeviceKind::kCuda : DeviceKind::kCpu);
}

TEST(OpDef, CountsFlops) {
  const OpRegistry ops = ToyOps();
  const std::vector<Shape> shapes = {Shape{2, 3}};
  const Attributes attributes;
  EXPECT_EQ(ops.Get("scale").CountFlops({shapes, shapes, attributes}), 6);
  EXPECT_EQ(ops.Get("blocked").CountFlops({shapes, shapes, attributes}), 0);
  EXPECT_EQ(PerInputElement(3)({shapes, {}, attributes}), 18);
}

TEST(OpRegistry, FindsByName) {
  const OpRegistry ops = ToyOps();
  EXPECT_EQ(ops.Find("scale"), &ops.Get("scale"));
  EXPECT_EQ(ops.Find("twirl"), nullptr);
}

TEST(OpDefDeathTest, UnknownPortStops) {
  const OpRegistry ops = ToyOps();
  EXPECT_DEATH(static_cast<void>(ops.Get("scale").InputIndex("z")), "'scale' has no port 'z'");
  EXPECT_DEATH(OpDef("op").Input("x").OutputMayReuse("y", "x"), "no port 'y'");
}

TEST(OpDefDeathTest, TooManyPortsStop) {
  EXPECT_DEATH(
      {
        OpDef op("wide");
        for (int i = 0; i < 13; ++i) op.Input(fmt::format("x{}", i));
      },
      "kMaxPorts");
}

TEST(OpRegistryDeathTest, TwoOpsOfOneNameStop) {
  OpRegistry ops = ToyOps();
  EXPECT_DEATH(ops.Add(OpDef("scale")), "two ops named 'scale'");
}

TEST(OpRegistryDeathTest, UnknownOpStops) {
  const OpRegistry ops = ToyOps();
  EXPECT_DEATH(static_cast<void>(ops.Get("twirl")), "no op 'twirl'");
}

}  // namespace
}  // namespace thimble
