#include "bench/machine_peaks.h"

#include <gtest/gtest.h>

namespace thimble {
namespace {

TEST(MachinePeaks, LimitIsTheSlowerOfArithmeticAndMemory) {
  const MachinePeaks peaks{.flops_per_second = 100, .copied_bytes_per_second = 10};
  EXPECT_DOUBLE_EQ(peaks.LimitSeconds(200, 10), 2);
  EXPECT_DOUBLE_EQ(peaks.LimitSeconds(200, 30), 3);
  EXPECT_DOUBLE_EQ(peaks.LimitSeconds(0, 0), 0);
}

TEST(MachinePeaks, EveryThreadDoesTheSameWork) {
  ThreadPool one(1);
  ThreadPool three(3);
  const double flops = RunFmaChains(one, 100);
  EXPECT_GE(flops, 100 * 12 * 2);
  EXPECT_EQ(RunFmaChains(three, 100), 3 * flops);
}

}  // namespace
}  // namespace thimble
