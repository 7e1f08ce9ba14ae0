// Whole training runs with --bn-group: on the CPU and, if there is one, on a GPU.
#include "tests/end_to_end/thimble_fixture.h"
#include "tests/support/cuda_or_skip.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::Not;

// Three steps per epoch; batches of 7 and, at the end, of 2.
std::string GhostOptions(int epochs) {
  return "train --model wrn-10-1 --data shapes:16,6 --batch 7 --lr 0.05 --augment crop-flip "
         "--log-every 1 --checkpoint-every 2 --threads 1 --epochs " +
         std::to_string(epochs) + " ";
}

class GhostBatchNormEndToEnd : public NoReportFixture {};

TEST_F(GhostBatchNormEndToEnd, MeasuresWhatWasPlannedWithAnyGroup) {
  for (int group : {1, 3, 6}) {
    const std::string run = At(std::to_string(group));
    RunWell(GhostOptions(1) + "--bn-group " + std::to_string(group) + " --out " + run);
    const auto summary = SummaryOf(run);
    EXPECT_EQ(summary["planned_peak_bytes"], summary["measured_peak_bytes"]) << group;
    EXPECT_EQ(summary["steps"], 3);
  }
}

TEST_F(GhostBatchNormEndToEnd, SameBitsForAnyNumberOfThreads) {
  RunWell(GhostOptions(2) + "--bn-group 3 --out @/one");
  std::string two = GhostOptions(2);
  two.replace(two.find("--threads 1"), 11, "--threads 2");
  RunWell(two + "--bn-group 3 --out @/two");
  ExpectSameRun(At("one"), At("two"));
}

TEST_F(GhostBatchNormEndToEnd, OneGroupIsThePlainRunAndTwoAreNot) {
  RunWell(GhostOptions(2) + "--out @/plain");
  RunWell(GhostOptions(2) + "--bn-group 7 --out @/whole");
  RunWell(GhostOptions(2) + "--bn-group 6 --out @/parts");
  ExpectSameRun(At("plain"), At("whole"));
  EXPECT_NE(MetricsOf(At("plain")), MetricsOf(At("parts")));
}

TEST_F(GhostBatchNormEndToEnd, GoesOnBitForBit) {
  RunWell(GhostOptions(3) + "--bn-group 2 --out @/whole");
  RunWell(GhostOptions(3) + "--bn-group 2 --steps 4 --out @/parted");
  RunWell(GhostOptions(3) + "--bn-group 2 --resume --extend --out @/parted");
  EXPECT_TRUE(WeightsOf(At("whole")) == WeightsOf(At("parted")));
}

TEST_F(GhostBatchNormEndToEnd, AResumedRunMustHaveTheSameGroup) {
  RunWell(GhostOptions(1) + "--bn-group 2 --out @/run");
  ExpectRefusal(GhostOptions(2) + "--bn-group 3 --resume --out @/run", 2,
                "--bn-group was '2' and is now '3'");
  ExpectRefusal(GhostOptions(2) + "--resume --out @/run", 2, "--bn-group was '2' and is now '0'");
}

TEST_F(GhostBatchNormEndToEnd, ThePlanSaysWhatIsLost) {
  const std::string command = "plan --model wrn-10-1 --batch 100 --bn-group 30 ";
  EXPECT_THAT(RunWell(command).out,
              HasSubstr("\nghost batch norm, lossy: batch-norm statistics per 25 samples\n"));
  const auto json = ParseObject(RunWell(command + "--json").out);
  EXPECT_EQ(json["techniques"][0]["name"], "ghost batch norm");
  EXPECT_EQ(json["techniques"][0]["class"], "lossy");
  EXPECT_LT(json["plain_arena_bytes"], json["arena_bytes"]);
  EXPECT_THAT(RunWell("plan --model wrn-10-1 --batch 100").out, Not(HasSubstr("ghost")));
}

TEST_F(GhostBatchNormEndToEnd, BadInput) {
  for (const char* group : {"-1", "x", "1.5", ""}) {
    ExpectRefusal(std::string("plan --bn-group=") + group, 2, "--bn-group");
  }
  ExpectRefusal("plan --batch 10 --bn-group 11", 2,
                "--bn-group 11: must be from 0 to the batch size, 10");
  ExpectRefusal("train --batch 10 --bn-group 11 --out @/run", 2, "--bn-group 11");
  EXPECT_FALSE(std::filesystem::exists(At("run")));
}

class CudaGhostBatchNormEndToEnd : public GhostBatchNormEndToEnd {
 protected:
  void SetUp() override {
    GhostBatchNormEndToEnd::SetUp();
    THIMBLE_CUDA_OR_SKIP();
  }
};

TEST_F(CudaGhostBatchNormEndToEnd, MeasuresWhatWasPlannedAndRepeatsItsBits) {
  for (const std::string group : {"1", "3", "7"}) {
    const std::string command = GhostOptions(2) + "--device cuda --bn-group " + group + " --out ";
    RunWell(command + At("first" + group));
    RunWell(command + At("second" + group));
    ExpectSameRun(At("first" + group), At("second" + group));
    const auto summary = SummaryOf(At("first" + group));
    EXPECT_EQ(summary["planned_peak_bytes"], summary["measured_peak_bytes"]) << group;
  }
}

TEST_F(CudaGhostBatchNormEndToEnd, OneGroupIsThePlainRun) {
  RunWell(GhostOptions(2) + "--device cuda --out @/plain");
  RunWell(GhostOptions(2) + "--device cuda --bn-group 7 --out @/whole");
  ExpectSameRun(At("plain"), At("whole"));
}

TEST_F(CudaGhostBatchNormEndToEnd, FirstLossesAreThoseOfTheCpu) {
  RunWell(GhostOptions(1) + "--bn-group 2 --out @/cpu");
  RunWell(GhostOptions(1) + "--bn-group 2 --device cuda --math fp32 --out @/cuda");
  const std::vector<double> cpu = LossesOf(At("cpu"));
  const std::vector<double> cuda = LossesOf(At("cuda"));
  ASSERT_EQ(cpu.size(), 3U);
  ASSERT_EQ(cuda.size(), 3U);
  for (size_t step = 0; step < 3; ++step) EXPECT_NEAR(cuda[step], cpu[step], 1e-3 * cpu[step]);
}

}  // namespace
}  // namespace thimble
