// Training in parts of a batch, from the command line to the files of the run.
#include "tests/end_to_end/profile_checks.h"

namespace thimble {
namespace {

using testing::HasSubstr;

// 23 images in batches of ten: the last one of an epoch has three.
std::string Training(int steps, int threads = 1) {
  return "train --model wrn-10-1 --data shapes:23,7 --batch 10 --log-every 1 --augment crop-flip "
         "--steps " +
         std::to_string(steps) + " --threads " + std::to_string(threads) + " ";
}

// No norm: parts change only rounding.
constexpr const char* kModelWithoutNorm = R"(
[input]
height = 32
width = 32
channels = 3
classes = 10
[[layers]]
type = "conv"
name = "conv"
channels = 4
stride = 2
padding = 1
[[layers]]
type = "relu"
[[layers]]
type = "global_avg_pool"
[[layers]]
type = "linear"
name = "fc"
features = 10
)";

class MicrobatchEndToEnd : public NoReportFixture {};

TEST_F(MicrobatchEndToEnd, MeasuresWhatWasPlannedForEverySize) {
  int64_t last_arena = 0;
  for (int size = 1; size <= 10; ++size) {
    const std::string number = std::to_string(size);
    RunWell(Training(6) + "--microbatch " + number + " --out @/run" + number);
    const auto summary = SummaryOf(At("run" + number));
    EXPECT_EQ(summary["planned_peak_bytes"], summary["measured_peak_bytes"]) << size;
    EXPECT_EQ(summary["steps"], 6);
    if (!kSanitized) {
      EXPECT_EQ(summary["heap_calls_in_steps"], 0) << size;
    }
    EXPECT_EQ(summary["map_calls_in_steps"], 0) << size;
    // Larger parts need no less.
    EXPECT_GE(summary["arena_bytes"].get<int64_t>(), last_arena) << size;
    last_arena = summary["arena_bytes"].get<int64_t>();
  }
}

TEST_F(MicrobatchEndToEnd, SameBitsForAnyNumberOfThreadsAndAnyRing) {
  RunWell(Training(6) + "--microbatch 3 --out @/one");
  RunWell(Training(6, 2) + "--microbatch 3 --out @/two");
  RunWell(Training(6) + "--microbatch 3 --prefetch 0 --out @/no_ring");
  ExpectSameRun(At("one"), At("two"));
  ExpectSameRun(At("one"), At("no_ring"));
}

TEST_F(MicrobatchEndToEnd, TheWholeBatchIsThePlainRun) {
  RunWell(Training(6) + "--out @/plain");
  RunWell(Training(6) + "--microbatch 10 --out @/whole");
  ExpectSameRun(At("plain"), At("whole"));
  EXPECT_EQ(SummaryOf(At("plain"))["arena_bytes"], SummaryOf(At("whole"))["arena_bytes"]);
}

TEST_F(MicrobatchEndToEnd, PlanSaysWhatPartsDo) {
  const std::string command = "plan --model wrn-10-1 --batch 100 --json";
  const auto plain = ParseObject(RunWell(command).out);
  const auto parts = ParseObject(RunWell(command + " --microbatch 10").out);
  EXPECT_EQ(parts["plain_arena_bytes"], plain["arena_bytes"]);
  EXPECT_LT(parts["arena_bytes"].get<int64_t>(), plain["arena_bytes"].get<int64_t>() / 6);
  const auto& technique = parts["techniques"][0];
  EXPECT_EQ(technique["name"], "microbatch");
  EXPECT_EQ(technique["class"], "lossy: batch-norm statistics per 10 samples");
  EXPECT_EQ(technique["saved_bytes"].get<int64_t>(),
            plain["arena_bytes"].get<int64_t>() - parts["arena_bytes"].get<int64_t>());
  EXPECT_EQ(parts["plans"][0]["name"], "train 10 of 100");
  EXPECT_EQ(parts["plans"][0]["runs_per_step"], 10);
  EXPECT_EQ(parts["plans"][1]["name"], "update 100");
  EXPECT_EQ(parts["flops"]["forward"], plain["flops"]["forward"]);
  EXPECT_GT(parts["flops"]["step"], plain["flops"]["step"]);
  EXPECT_EQ(plain["savings"]["offered"][0]["name"], "--microbatch 10");
  EXPECT_EQ(plain["savings"]["offered"][0]["arena_bytes"], parts["arena_bytes"]);
  EXPECT_EQ(plain["savings"]["offered"][0]["step_flops"], parts["flops"]["step"]);
  EXPECT_THAT(
      RunWell("plan --model wrn-10-1 --batch 8 --microbatch 3").out,
      HasSubstr("microbatch, lossy: batch-norm statistics per 3 samples: 3 parts of at most "
                "3 samples\n"));
}

TEST_F(MicrobatchEndToEnd, ProfileRunsWholeSteps) {
  for (const char* options : {"--microbatch 3", "--microbatch 1 --prefetch 0", "--microbatch 7",
                              "--microbatch 4 --augment crop-flip --threads 2"}) {
    const std::string command =
        std::string("profile --model wrn-10-1 --batch 7 --repeat 1 --json ") + options;
    const auto profile = ParseObject(RunWell(command).out);
    ExpectMeasuredAsPlanned(profile, command);
    int64_t flops = 0;
    for (const auto& op : profile["ops"]) flops += op["flops"].get<int64_t>();
    const auto plan =
        ParseObject(RunWell(std::string("plan --model wrn-10-1 --batch 7 --json ") + options).out);
    EXPECT_EQ(plan["flops"]["step"], flops) << command;
    EXPECT_EQ(profile["batch"], 7);
  }
}

// Without batch norm a run in parts stays close to the plain one, and the plan says so.
TEST_F(MicrobatchEndToEnd, WithoutBatchNormLossesAreEqualToRounding) {
  Put(At("net.toml"), kModelWithoutNorm);
  const std::string train =
      "train --model @/net.toml --data shapes:23,7 --batch 10 --steps 6 "
      "--log-every 1 --threads 1 --augment crop-flip --lr 0.01 ";
  RunWell(train + "--out @/plain");
  const std::vector<double> expected = LossesOf(At("plain"));
  ASSERT_EQ(expected.size(), 6U);
  for (const char* size : {"1", "3", "7"}) {
    RunWell(train + "--microbatch " + size + " --out @/parts" + size);
    const std::vector<double> losses = LossesOf(At(std::string("parts") + size));
    ASSERT_EQ(losses.size(), expected.size());
    for (size_t i = 0; i < losses.size(); ++i) {
      EXPECT_NEAR(losses[i], expected[i], 1e-5 * expected[i]) << size << ", step " << i;
    }
  }
  const auto plan =
      ParseObject(RunWell("plan --model @/net.toml --batch 10 --microbatch 3 --json").out);
  EXPECT_EQ(plan["techniques"][0]["class"], "equal");
}

TEST_F(MicrobatchEndToEnd, ARunOfPartsIsResumedEvaluatedAndReported) {
  RunWell(Training(6) + "--microbatch 4 --out @/whole");
  RunWell(Training(2) + "--microbatch 4 --out @/run");
  RunWell(Training(6) + "--microbatch 4 --resume --extend --out @/run");
  EXPECT_TRUE(WeightsOf(At("whole")) == WeightsOf(At("run")));
  const auto summary = SummaryOf(At("run"));
  EXPECT_EQ(summary["config"]["microbatch"], 4);
  EXPECT_THAT(summary["command"].get<std::string>(), HasSubstr("--microbatch 4"));
  EXPECT_THAT(Content(At("run/config.toml")), HasSubstr("microbatch = 4\n"));
  const auto evaluated = ParseObject(RunWell("eval @/run --json").out);
  EXPECT_EQ(evaluated["loss"], summary["test_loss"]);
  EXPECT_EQ(ParseObject(RunWell("eval @/run --batch 2 --json").out)["images"], 7);
  RunWell("report @/run");
  const std::string page = Content(At("run/report.html"));
  EXPECT_THAT(page, HasSubstr("batch 10 in parts of at most 4"));
  EXPECT_THAT(page, HasSubstr("train 4 of 10"));
}

TEST_F(MicrobatchEndToEnd, BadInput) {
  for (const char* command : {"plan", "train", "profile"}) {
    const std::string start = std::string(command) + " --model wrn-10-1 --batch 10 --microbatch ";
    ExpectRefusal(start + "0", 2, "--microbatch 0: expected a whole number, at least 1");
    ExpectRefusal(start + "-1", 2, "--microbatch -1: expected a whole number, at least 1");
    ExpectRefusal(start + "11", 2, "--microbatch 11: must be from 1 to the batch size, 10");
    ExpectRefusal(start + "half", 2, "--microbatch half: expected a whole number");
  }
  Put(At("zero.toml"), "batch = 10\nmicrobatch = 0\n");
  ExpectRefusal("plan --config @/zero.toml", 2, "--microbatch 0: expected a whole number");
  Put(At("parts.toml"), "batch = 10\nmicrobatch = 5\n");
  EXPECT_EQ(ParseObject(RunWell("plan --config @/parts.toml --json").out)["plans"][0]["name"],
            "train 5 of 10");
  RunWell(Training(6) + "--microbatch 5 --out @/run");
  ExpectRefusal(Training(6) + "--microbatch 2 --resume --out @/run", 2,
                "--microbatch was '5' and is now '2'");
  ExpectRefusal(Training(6) + "--resume --out @/run", 2, "--microbatch was '5' and is now ''");
}

}  // namespace
}  // namespace thimble
