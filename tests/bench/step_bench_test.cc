#include <gmock/gmock.h>

#include "tests/bench/bench_program.h"
#include "tests/support/cuda_or_skip.h"
#include "tests/support/test_paths.h"
#include "thimble/base/json.h"

namespace thimble {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ProcessResult RunStepBench(const std::vector<std::string>& arguments) {
  return RunBenchProgram(StepBench(), arguments);
}

TEST(StepBench, PrintsPositiveNumbersAsJson) {
  const auto result =
      RunStepBench({"--model", "wrn-10-1", "--batch", "2", "--steps", "3", "--nesterov"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = ParseJson(result.out).value();
  EXPECT_EQ(json["model"], "wrn-10-1");
  EXPECT_EQ(json["batch"], 2);
  EXPECT_EQ(json["steps"], 3);
  EXPECT_EQ(json["device"], "cpu");
  EXPECT_EQ(json["math"], "fp32");
  EXPECT_TRUE(json.contains("threads"));
  EXPECT_TRUE(json.contains("simd"));
  for (const char* key : {"ms", "fastest_ms", "images_per_second", "gflops", "arena_bytes"}) {
    EXPECT_GT(json[key], 0) << key;
  }
}

TEST(StepBench, ListsOpsBesideTheirLimits) {
  const auto result =
      RunStepBench({"--model", "wrn-10-1", "--batch", "2", "--steps", "1", "--ops"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* text : {"limit ms", "reached", "conv2d_grad_weight", "sgd_update"}) {
    EXPECT_THAT(result.out, HasSubstr(text));
  }
}

TEST(StepBench, TimesEveryShapeOfBatches) {
  const auto run = [](std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "--model", "dynamicconv-tiny", "--data", "numbers:30,5", "--batch", "100", "--optimizer",
        "adam",    "--steps",          "1",      "--shapes"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunStepBench(arguments);
  };
  const auto result = run({});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* text : {"train ", "mean ", "all in turn "}) {
    EXPECT_THAT(result.out, HasSubstr(text));
  }
  const auto in_parts = run({"--microbatch", "50"});
  EXPECT_EQ(in_parts.exit_code, 2);
  EXPECT_THAT(in_parts.err, HasSubstr("only without --microbatch"));
}

TEST(CudaStepBench, TimesAsManyStepsAsItWasTold) {
  THIMBLE_CUDA_OR_SKIP();
  const auto result =
      RunStepBench({"--device", "cuda", "--model", "wrn-10-1", "--batch", "2", "--steps", "23"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = ParseJson(result.out).value();
  EXPECT_EQ(json["steps"], 23);
  EXPECT_NE(json["device"], "cpu");
  EXPECT_EQ(json["math"], "tf32");
  EXPECT_FALSE(json.contains("threads"));
  EXPECT_FALSE(json.contains("simd"));
  EXPECT_GT(json["ms"], 0);
}

TEST(CudaStepBench, NamesTheRoofsOfItsMath) {
  THIMBLE_CUDA_OR_SKIP();
  const auto table = [](const std::string& math) {
    const auto result = RunStepBench({"--device", "cuda", "--math", math, "--model", "wrn-10-1",
                                      "--batch", "2", "--steps", "1", "--ops"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("GFLOP/s in fp32"));
    EXPECT_THAT(result.out, HasSubstr("conv2d_grad_weight"));
    return result.out;
  };
  EXPECT_THAT(table("tf32"), HasSubstr("GFLOP/s in TF32 for convolutions"));
  EXPECT_THAT(table("fp32"), Not(HasSubstr("TF32")));
}

TEST(StepBench, RefusesWrongUse) {
  const auto error = [](const std::vector<std::string>& arguments) {
    const auto result = RunStepBench(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    return result.err;
  };
  EXPECT_THAT(error({"--speed", "3"}), HasSubstr("--speed: unknown option"));
  EXPECT_THAT(error({"ops"}), HasSubstr("ops: unknown option"));
  EXPECT_THAT(error({"--seconds"}), HasSubstr("--seconds: expected a value"));
  EXPECT_THAT(error({"--seconds", "ten"}), HasSubstr("--seconds ten: expected a number"));
  EXPECT_THAT(error({"--seconds", "-1"}), HasSubstr("--seconds -1: expected a number"));
  EXPECT_THAT(error({"--batch", "0"}), HasSubstr("--batch 0"));
  EXPECT_THAT(error({"--simd", "mmx"}), HasSubstr("--simd mmx"));
}

TEST(StepBench, EndsWithTheInputItServes) {
  const auto result =
      RunStepBench({"--model", "wrn-10-1", "--batch", "1", "--serve"});  // input is empty
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
}

}  // namespace
}  // namespace thimble
