#include "bench/machine_peaks.h"

#include <gtest/gtest.h>

#include "tests/support/cuda_or_skip.h"

namespace thimble {
namespace {

TEST(MachinePeaks, LimitIsTheSlowerOfArithmeticAndMemory) {
  const MachinePeaks peaks{.flops_per_second = 100, .copied_bytes_per_second = 10};
  EXPECT_DOUBLE_EQ(peaks.LimitSeconds("conv2d", {.flops = 200, .bytes = 10}), 2);
  EXPECT_DOUBLE_EQ(peaks.LimitSeconds("linear", {.flops = 200, .bytes = 10}), 2);
  EXPECT_DOUBLE_EQ(peaks.LimitSeconds("conv2d", {.flops = 200, .bytes = 30}), 3);
  EXPECT_DOUBLE_EQ(peaks.LimitSeconds("conv2d", {}), 0);
}

TEST(MachinePeaks, TensorCoresAreForConvolutionsAlone) {
  const MachinePeaks peaks{
      .flops_per_second = 100, .copied_bytes_per_second = 10, .tf32_flops_per_second = 400};
  EXPECT_DOUBLE_EQ(peaks.LimitSeconds("conv2d", {.flops = 400, .bytes = 0}), 1);
  EXPECT_DOUBLE_EQ(peaks.LimitSeconds("conv2d_grad_weight", {.flops = 400, .bytes = 0}), 1);
  EXPECT_DOUBLE_EQ(peaks.LimitSeconds("linear", {.flops = 400, .bytes = 0}), 4);
  EXPECT_DOUBLE_EQ(peaks.LimitSeconds("batch_norm", {.flops = 400, .bytes = 0}), 4);
}

TEST(MachinePeaks, EveryThreadDoesTheSameWork) {
  ThreadPool one(1);
  ThreadPool three(3);
  const double flops = RunFmaChains(one, 100);
  EXPECT_GE(flops, 100 * 12 * 2);
  EXPECT_EQ(RunFmaChains(three, 100), 3 * flops);
}

// Far from any GPU with tensor cores: only a wrong count is outside these limits.
TEST(CudaMachinePeaks, AreThoseOfAGpu) {
  THIMBLE_CUDA_OR_SKIP();
  const MachinePeaks tf32 = MeasureMachinePeaksOfGpu(/*tf32=*/true);
  EXPECT_GT(tf32.tf32_flops_per_second, 1e11);
  EXPECT_LT(tf32.tf32_flops_per_second, 1e17);
  EXPECT_GT(tf32.flops_per_second, 1e11);
  EXPECT_LT(tf32.flops_per_second, 1e16);
  EXPECT_GT(tf32.copied_bytes_per_second, 1e10);
  EXPECT_LT(tf32.copied_bytes_per_second, 1e14);
  EXPECT_EQ(MeasureMachinePeaksOfGpu(/*tf32=*/false).tf32_flops_per_second, 0);
}

}  // namespace
}  // namespace thimble
