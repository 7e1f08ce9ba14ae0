#include <gmock/gmock.h>

#include "tests/bench/bench_program.h"
#include "tests/support/test_paths.h"
#include "thimble/base/json.h"

namespace thimble {
namespace {

using ::testing::HasSubstr;

ProcessResult RunKernelBench(const std::vector<std::string>& arguments) {
  return RunBenchProgram(KernelBench(), arguments);
}

TEST(KernelBench, CountsWorkOfAKernel) {
  const auto result = RunKernelBench({"--model", "wrn-10-1", "--batch", "1",
                                      "--benchmark_filter=^conv2d/Conv2dCpu/1x32x32x3_",
                                      "--benchmark_min_time=0.001", "--benchmark_format=json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = ParseJson(result.out).value();
  ASSERT_EQ(json["benchmarks"].size(), 1U);
  for (const char* counter : {"GFLOP/s", "GB/s", "of_fma_peak", "of_copy", "per_step"}) {
    EXPECT_GT(json["benchmarks"][0][counter], 0) << counter;
  }
  for (const char* key : {"FMA peak", "copy", "model", "threads", "simd"}) {
    EXPECT_TRUE(json["context"].contains(key)) << key;
  }
}

TEST(KernelBench, RefusesWrongUse) {
  const auto unknown = RunKernelBench({"--speed", "3"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("--speed: unknown option"));
  const auto not_googles = RunKernelBench({"--model", "wrn-10-1", "--benchmark_speed=3"});
  EXPECT_EQ(not_googles.exit_code, 2);
  EXPECT_THAT(not_googles.err, HasSubstr("--benchmark_speed=3"));
  EXPECT_EQ(RunKernelBench({"--model", "wrn-11-1"}).exit_code, 2);
  const auto gpu = RunKernelBench({"--model", "wrn-10-1", "--device", "cuda"});
  EXPECT_EQ(gpu.exit_code, 2);
  EXPECT_THAT(gpu.err, HasSubstr("--device cuda"));
}

TEST(KernelBench, Helps) {
  const auto result = RunKernelBench({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("--benchmark_filter"));
}

}  // namespace
}  // namespace thimble
