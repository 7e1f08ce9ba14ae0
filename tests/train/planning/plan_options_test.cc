#include "thimble/train/planning/plan_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thimble {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(PlanOptionsOf, ThreadsAndScratchOfTheCpu) {
  TrainConfig config;
  config.threads = 3;
  config.scratch_bytes = 65536;
  const auto options = PlanOptionsOf(config);
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->device, DeviceKind::kCpu);
  EXPECT_EQ(options->limits.threads, 3);
  EXPECT_EQ(options->limits.scratch_bytes_per_thread, 65536U);
  EXPECT_THAT(options->kernel_options, IsEmpty());
}

// The cores of the host do not matter there.
TEST(PlanOptionsOf, AGpuHasTheScratchOfManyThreads) {
  TrainConfig config;
  config.device = "cuda";
  config.scratch_bytes = 65536;
  const auto options = PlanOptionsOf(config);
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->device, DeviceKind::kCuda);
  EXPECT_EQ(options->limits.scratch_bytes_per_thread, kThreadsOfAGpu * 65536);
  EXPECT_THAT(options->kernel_options, IsEmpty());
  config.math = "fp32";
  EXPECT_THAT(PlanOptionsOf(config)->kernel_options, ElementsAre("fp32"));
}

TEST(PlanOptionsOf, KernelsAndTechniquesAsAskedFor) {
  TrainConfig config;
  config.conv = "winograd";
  config.without = {"order"};
  const auto options = PlanOptionsOf(config);
  ASSERT_TRUE(options.ok());
  EXPECT_THAT(options->kernel_options, Contains("winograd"));
  EXPECT_THAT(options->skipped_passes, ElementsAre("order"));
}

TEST(PlanOptionsOf, RefusesWhatDoesNotExist) {
  TrainConfig config;
  config.without = {"ordre"};
  EXPECT_THAT(PlanOptionsOf(config).error().message,
              HasSubstr("no technique 'ordre' to leave out; expected one of "));
  config.without = {};
  config.recompute = "sometimes";
  EXPECT_FALSE(PlanOptionsOf(config).ok());
}

}  // namespace
}  // namespace thimble
