#include "thimble/graph/op_def.h"

#include <gtest/gtest.h>

#include "tests/support/toy_ops.h"
#include "thimble/device/cpu/thread_pool.h"

namespace thimble {
namespace {

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
