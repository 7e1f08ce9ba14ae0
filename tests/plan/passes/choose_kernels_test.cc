#include "thimble/plan/passes/choose_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plan/toy_plan.h"

namespace thimble::toy {
namespace {

using testing::HasSubstr;

struct WideKernel {
  static void Run(const KernelCall&) {}
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits) {
    return static_cast<size_t>(call.outputs[0].elements()) +
           limits.scratch_bytes_per_thread * static_cast<size_t>(limits.threads);
  }
};
std::string_view OnlyEven(const OpCall& call) {
  return call.inputs[0].elements() % 2 == 0 ? "" : "the number of elements is odd";
}

OpDef MakePicky(std::vector<Kernel> kernels) {
  return OpDef("picky").Input("x").Output("y").ShapeRule(SameAs(0)).Kernels(std::move(kernels));
}

class ChooseKernelsTest : public testing::Test {
 protected:
  Result<std::string> Choose(std::vector<Kernel> kernels, int64_t elements) {
    ops_ = OpRegistry();
    ops_.Add(MakePicky(std::move(kernels)));
    draft_ = PlanDraft();
    const ValueId x = AddInput(draft_.graph, "x", Role::kInput, {elements});
    NodeSpec spec;
    spec.op = "picky";
    spec.inputs = {x};
    spec.layer = "the layer";
    EXPECT_TRUE(AppendNode(draft_.graph, ops_, std::move(spec)).ok());
    draft_.order = {NodeId(0)};
    return MakeChooseKernelsPass()->Run(draft_, ops_, options_);
  }

  OpRegistry ops_;
  PlanDraft draft_;
  PlanOptions options_;
};

const Kernel kCuda = MakeKernel<CopyKernel>("on_cuda", DeviceKind::kCuda, &Always);
const Kernel kEven = MakeKernel<WideKernel>("even", DeviceKind::kCpu, &OnlyEven);
const Kernel kAny = MakeKernel<CopyKernel>("any", DeviceKind::kCpu, &Always);

struct RoughKernel : WideKernel {
  static constexpr std::string_view kOption = "rough";
};
const Kernel kRough = MakeKernel<RoughKernel>("rough kernel", DeviceKind::kCpu, &OnlyEven);

TEST_F(ChooseKernelsTest, TakesAKernelWithAnOptionOnlyWhenAsked) {
  options_.limits = {2, 1 << 10};
  auto chosen = Choose({kRough, kAny}, 0);
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(draft_.kernels.at(0).kernel, 1U);
  EXPECT_EQ(*chosen, "");
  options_.kernel_options = {"rough"};
  chosen = Choose({kRough, kAny}, 0);
  ASSERT_TRUE(chosen.ok()) << chosen.error().message;
  EXPECT_EQ(draft_.kernels.at(0).kernel, 0U);
  EXPECT_EQ(*chosen, "rough for 1 of 1 nodes");
  ASSERT_TRUE(Choose({kRough, kAny}, 7).ok());  // declined: an odd number
  EXPECT_EQ(draft_.kernels.at(0).kernel, 1U);
}

// Too little scratch must not lead to other bits.
TEST_F(ChooseKernelsTest, AKernelThatWasAskedForNeedsItsScratch) {
  options_.limits = {2, 1 << 10};
  options_.kernel_options = {"rough"};
  const auto refused = Choose({kRough, kAny}, 8);  // needs eight bytes more than the limit
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("layer 'the layer'"));
  EXPECT_THAT(refused.error().message, HasSubstr("--scratch"));
  EXPECT_THAT(refused.error().message, HasSubstr("'rough'"));
}

TEST_F(ChooseKernelsTest, TakesTheFirstOfTheDeviceThatAccepts) {
  ASSERT_TRUE(Choose({kCuda, kEven, kAny}, 8).ok());
  EXPECT_EQ(draft_.kernels.at(0).kernel, 1U);
  ASSERT_TRUE(Choose({kCuda, kEven, kAny}, 7).ok());
  EXPECT_EQ(draft_.kernels.at(0).kernel, 2U);
  options_.device = DeviceKind::kCuda;
  ASSERT_TRUE(Choose({kEven, kAny, kCuda}, 8).ok());
  EXPECT_EQ(draft_.kernels.at(0).kernel, 2U);
}

TEST_F(ChooseKernelsTest, AsksForScratchWithinTheLimits) {
  options_.limits = {3, 1000};
  ASSERT_TRUE(Choose({kEven}, 8).ok());
  EXPECT_EQ(draft_.kernels.at(0).scratch_bytes, 3008U);
  ASSERT_TRUE(Choose({kAny}, 8).ok());
  EXPECT_EQ(draft_.kernels.at(0).scratch_bytes, 0U);
}

TEST_F(ChooseKernelsTest, SaysWhoDeclinedAndWhy) {
  const auto chosen = Choose({kCuda, kEven}, 7);
  ASSERT_FALSE(chosen.ok());
  EXPECT_EQ(chosen.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(chosen.error().message,
              HasSubstr("layer 'the layer': no cpu kernel runs op 'picky'; even: the number of "
                        "elements is odd"));
}

TEST_F(ChooseKernelsTest, SaysWhereTheDeviceHasNone) {
  options_.device = DeviceKind::kCuda;
  const auto chosen = Choose({kAny}, 8);
  ASSERT_FALSE(chosen.ok());
  EXPECT_THAT(chosen.error().message, HasSubstr("no cuda kernel runs op 'picky'"));
}

}  // namespace
}  // namespace thimble::toy
