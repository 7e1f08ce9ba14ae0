#include "thimble/train/profile/calibrate.h"

#include <gtest/gtest.h>

#include "tests/train/image_programs.h"
#include "tests/train/tiny_run.h"
#include "thimble/train/options/options.h"
#include "thimble/train/profile/profile_run.h"

namespace thimble {
namespace {

TEST(AddSamples, OpsAddUpToTheStep) {
  TrainConfig config = TinyConfig();
  config.batch = 6;
  config.microbatch = 2;
  const auto program = MakeTrainingProgram(config, ImageSpec{}, {}, BuiltinOps());
  ASSERT_TRUE(program.ok());
  auto profile = RunProfile(config, *program, 1, BuiltinOps());
  ASSERT_TRUE(profile.ok());
  // Times that are not measured: each call a second, the whole step a tenth of that.
  size_t calls = profile->op_seconds.size() * static_cast<size_t>(profile->record.runs_per_step);
  profile->op_seconds.assign(profile->op_seconds.size(), 1.0);
  for (OtherPlan& other : profile->others) {
    calls += other.op_seconds.size() * static_cast<size_t>(other.record.runs_per_step);
    other.op_seconds.assign(other.op_seconds.size(), 1.0);
  }
  profile->step_seconds = 0.1 * static_cast<double>(calls);
  OpTimes::Samples samples;
  AddSamples(*profile, program->program, BuiltinOps(), samples);
  size_t found = 0;
  for (const auto& [kind, of_kind] : samples) {
    for (const OpSample& sample : of_kind) EXPECT_NEAR(sample.seconds, 0.1, 1e-9) << kind;
    found += of_kind.size();
  }
  size_t steps = profile->op_seconds.size();
  for (const OtherPlan& other : profile->others) steps += other.op_seconds.size();
  EXPECT_EQ(found, steps);
}

TEST(Calibrate, MeasuresEveryKindOfCall) {
  TrainConfig config;
  config.threads = 2;
  const MeasuredNetwork network{
      .model = "wrn-10-1", .batch = 4, .microbatch = 2, .levers = {{"precision", "fp16"}}};
  const auto times = Calibrate(config, {network}, BuiltinOps());
  ASSERT_TRUE(times.ok()) << times.error().message;
  EXPECT_EQ(times->threads(), 2);
  config.model = network.model;
  config.batch = network.batch;
  config.microbatch = network.microbatch;
  config.levers = network.levers;
  const auto program = MakeTrainingProgram(config, ImageSpec{}, {}, BuiltinOps());
  ASSERT_TRUE(program.ok());
  const OpTimes::Samples samples = times->samples();
  for (const Step& step : program->main_plan().steps) {
    const std::string kind = KindOf(program->main_plan(), step, BuiltinOps());
    EXPECT_TRUE(samples.contains(kind)) << kind;
  }
  EXPECT_GT(StepSeconds(program->program, BuiltinOps(), *times), 0);
}

TEST(Calibrate, NetworksHaveValidOptions) {
  for (const DeviceKind device : {DeviceKind::kCpu, DeviceKind::kCuda}) {
    for (const MeasuredNetwork& network : NetworksToMeasure(device)) {
      TrainConfig config;
      config.model = network.model;
      config.batch = network.batch;
      config.microbatch = network.microbatch;
      config.levers = network.levers;
      EXPECT_TRUE(CheckConfig(config).ok()) << network.batch;
    }
  }
}

}  // namespace
}  // namespace thimble
