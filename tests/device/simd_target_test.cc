#include "thimble/device/cpu/simd_target.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

// The same list of targets as the library is built with.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/device/simd_target_test.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {

// The target that dynamic dispatch has chosen.
int64_t DispatchedTarget() { return HWY_TARGET; }

}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(DispatchedTarget);

namespace {

TEST(SimdTarget, MachineHasOne) {
  const auto targets = SupportedSimdTargets();
  ASSERT_FALSE(targets.empty());
  EXPECT_EQ(ActiveSimdTarget(), targets.front());
}

TEST(SimdTarget, PinningDecidesWhichCodeRuns) {
  const std::map<std::string, int64_t> bits = {
      {"amx", HWY_AVX3},  {"avx512bf16", HWY_AVX3}, {"avx512", HWY_AVX3},   {"avx2", HWY_AVX2},
      {"sse4", HWY_SSE4}, {"neon", HWY_NEON},       {"scalar", HWY_SCALAR}, {"emu128", HWY_EMU128}};
  for (const std::string& target : SupportedSimdTargets()) {
    ASSERT_TRUE(PinSimdTarget(target).ok());
    EXPECT_EQ(ActiveSimdTarget(), target);
    EXPECT_EQ(HWY_DYNAMIC_DISPATCH(DispatchedTarget)(), bits.at(target)) << target;
    EXPECT_EQ(MultipliesPairs(), target == "avx512bf16" || target == "amx");
    EXPECT_EQ(MultipliesTiles(), target == "amx");
  }
  ASSERT_TRUE(PinSimdTarget("auto").ok());
  EXPECT_EQ(HWY_DYNAMIC_DISPATCH(DispatchedTarget)(), bits.at(SupportedSimdTargets().front()));
}

TEST(SimdTarget, AutoGoesBackToTheBest) {
  ASSERT_TRUE(PinSimdTarget(SupportedSimdTargets().back()).ok());
  ASSERT_TRUE(PinSimdTarget("auto").ok());
  EXPECT_EQ(ActiveSimdTarget(), SupportedSimdTargets().front());
}

TEST(SimdTarget, ListDoesNotDependOnWhatIsPinned) {
  const auto before = SupportedSimdTargets();
  ASSERT_TRUE(PinSimdTarget(before.back()).ok());
  EXPECT_EQ(SupportedSimdTargets(), before);
  ASSERT_TRUE(PinSimdTarget("auto").ok());
}

TEST(SimdTarget, RejectsUnknownNames) {
  for (const char* name : {"", "AVX2", "mmx", "avx2 "}) {
    const auto pinned = PinSimdTarget(name);
    ASSERT_FALSE(pinned.ok()) << name;
    EXPECT_NE(pinned.error().message.find("expected auto, "), std::string::npos);
  }
}

TEST(SimdTarget, RejectsTargetsOfOtherMachines) {
  const auto targets = SupportedSimdTargets();
  for (const char* name : {"amx", "avx512bf16", "avx512", "neon"}) {
    if (std::find(targets.begin(), targets.end(), name) != targets.end()) continue;
    EXPECT_FALSE(PinSimdTarget(name).ok()) << name;
  }
  EXPECT_EQ(ActiveSimdTarget(), targets.front());
}

}  // namespace
}  // namespace thimble
#endif  // HWY_ONCE
