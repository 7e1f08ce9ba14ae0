#include "thimble/train/step_time/op_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/train/image_programs.h"
#include "tests/train/tiny_run.h"
#include "thimble/train/planning/training_program.h"

namespace thimble {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// 2 us per call, 1 ns per flop, 3 ns per byte.
double ByLaw(const NodeCost& cost) {
  return 2e-6 + 1e-9 * static_cast<double>(cost.flops) + 3e-9 * static_cast<double>(cost.bytes);
}

std::vector<OpSample> SamplesByLaw() {
  std::vector<OpSample> samples;
  for (const NodeCost cost :
       {NodeCost{100, 50}, {5'000, 400}, {20'000, 9'000}, {1'000, 90'000}, {4'000'000, 70'000}}) {
    samples.push_back({cost, ByLaw(cost)});
  }
  return samples;
}

TEST(CallTimes, FindsTheLawBehindSamples) {
  const CallTimes times(SamplesByLaw());
  for (const NodeCost cost : {NodeCost{0, 10}, {700, 700}, {1'000'000, 1'000}, {10, 1'000'000}}) {
    EXPECT_NEAR(times.Seconds(cost), ByLaw(cost), 1e-3 * ByLaw(cost));
  }
}

TEST(CallTimes, NearSamplesCorrectTheFit) {
  // Twice the time of the law for one shape, in two sizes.
  std::vector<OpSample> samples = SamplesByLaw();
  for (const int64_t size : {1, 10}) {
    const NodeCost cost{size * 30'000, size * 100};
    samples.push_back({cost, 2 * ByLaw(cost)});
  }
  const CallTimes times(samples);
  const NodeCost between{100'000, 333};
  EXPECT_NEAR(times.Seconds(between), 2 * ByLaw(between), 0.15 * 2 * ByLaw(between));
  for (const OpSample& sample : samples) {
    EXPECT_NEAR(times.Seconds(sample.cost), sample.seconds, 0.1 * sample.seconds);
  }
}

TEST(CallTimes, OneSampleIsEnough) {
  const CallTimes times({{{100, 100}, 1e-3}});
  EXPECT_NEAR(times.Seconds({100, 100}), 1e-3, 1e-9);
  EXPECT_LE(times.Seconds({0, 0}), 1e-3 + 1e-9);
}

TEST(OpTimes, UnknownKindsTakeTheTimeOfTheirOpOrOfAll) {
  const OpTimes times(
      {{"add AddCpu ff>f", {{{10, 10}, 1e-6}}}, {"conv2d Conv2dCpu ff>f", {{{10, 10}, 5e-6}}}}, 2);
  EXPECT_NEAR(times.Seconds("conv2d Conv2dCpu hh>h", {10, 10}), 5e-6, 1e-9);
  const double other = times.Seconds("scale ScaleCpu f>f", {10, 10});
  EXPECT_GT(other, 1e-6);
  EXPECT_LT(other, 5e-6);
  EXPECT_EQ(times.threads(), 2);
}

TEST(OpTimes, KindsTellTypesPackedValuesAndScratchApart) {
  TrainConfig config;
  config.model = "wrn-10-2";
  config.batch = 2;
  config.threads = 1;
  config.levers = {{"precision", "fp16"}, {"sparsity", "0.5"}};
  const auto kinds = [&] {
    const auto program = MakeTrainingProgram(config, ImageSpec{}, {}, BuiltinOps());
    std::set<std::string> found;
    for (const Step& step : program->main_plan().steps) {
      found.insert(KindOf(program->main_plan(), step, BuiltinOps()));
    }
    return found;
  };
  EXPECT_THAT(kinds(), Contains("conv2d Conv2dCpu hH>h"));
  EXPECT_THAT(kinds(), Not(Contains(HasSubstr("/"))));
  config.scratch_bytes = 64 << 10;
  EXPECT_THAT(kinds(), Contains(StartsWith("conv2d Conv2dCpu hH>h/")));
}

TEST(StepSeconds, AddsUpTheRunsOfAStep) {
  TrainConfig config = TinyConfig();
  config.batch = 6;
  config.microbatch = 2;
  config.threads = 1;
  const auto program = MakeTrainingProgram(config, ImageSpec{}, {}, BuiltinOps());
  ASSERT_TRUE(program.ok());
  // Each call takes a second, whatever it computes.
  OpTimes::Samples samples;
  for (const NodeCost cost : {NodeCost{1, 1}, {1'000'000, 1'000}, {1'000, 1'000'000}}) {
    samples["any"].push_back({cost, 1.0});
  }
  double calls = 0;
  for (size_t i = 0; i < program->program.plans.size(); ++i) {
    calls += static_cast<double>(program->program.runs_per_step[i]) *
             static_cast<double>(program->program.plans[i].steps.size());
  }
  EXPECT_NEAR(StepSeconds(program->program, BuiltinOps(), OpTimes(samples, 1)), calls,
              1e-3 * calls);
  // Measured with four threads, run with one.
  EXPECT_NEAR(StepSeconds(program->program, BuiltinOps(), OpTimes(samples, 4)), 4 * calls,
              4e-3 * calls);
  EXPECT_EQ(StepSeconds(program->program, BuiltinOps(), OpTimes()), 0);
}

TEST(FormatSeconds, TakesTheUnitThatFits) {
  EXPECT_EQ(FormatSeconds(0.002236), "2.24 ms");
  EXPECT_EQ(FormatSeconds(1.3456), "1.35 s");
}

}  // namespace
}  // namespace thimble
