// Whole training runs on a GPU. Without one these tests are skipped.
#include <chrono>

#include "tests/end_to_end/thimble_fixture.h"
#include "tests/support/cuda_or_skip.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::Not;

// Ten steps per epoch (the last one smaller), an evaluation after each.
std::string CudaOptions(int epochs) {
  return "train --model wrn-10-1 --data shapes:38,6 --batch 4 --lr 0.05 --augment crop-flip "
         "--log-every 1 --checkpoint-every 3 --schedule constant --epochs " +
         std::to_string(epochs) + " ";
}

class CudaTrainEndToEnd : public ThimbleFixture {
 protected:
  void SetUp() override {
    ThimbleFixture::SetUp();
    THIMBLE_CUDA_OR_SKIP();
  }
};

TEST_F(CudaTrainEndToEnd, MeasuresWhatWasPlanned) {
  int runs = 0;
  for (const char* options : {"", "--math fp32 ", "--prefetch 0 ", "--prefetch 1 "}) {
    const std::string out = At("run" + std::to_string(runs++));
    RunWell(CudaOptions(2) + "--device cuda " + options + "--out " + out);
    const auto summary = SummaryOf(out);
    EXPECT_EQ(summary["planned_peak_bytes"], summary["measured_peak_bytes"]) << options;
    EXPECT_EQ(summary["device"], "cuda");
    EXPECT_NE(summary["device_name"], "");
    EXPECT_EQ(summary["math"], std::string(options).find("fp32") == 7 ? "fp32" : "tf32");
    EXPECT_EQ(summary["device_allocations_in_steps"], 0);
    EXPECT_GT(summary["pinned_host_bytes"].get<int64_t>(), 0);
    EXPECT_EQ(summary["steps"], 20);
  }
}

// The driver counts the memory of all processes.
class CudaAloneTrainEndToEnd : public CudaTrainEndToEnd {};

TEST_F(CudaAloneTrainEndToEnd, DriverCountsContextAndArena) {
  RunWell(CudaOptions(1) + "--device cuda --out @/run");
  const auto summary = SummaryOf(At("run"));
  EXPECT_GE(summary["driver_bytes"].get<int64_t>(),
            summary["context_bytes"].get<int64_t>() + summary["arena_bytes"].get<int64_t>());
}

TEST_F(CudaTrainEndToEnd, SameBitsTwiceAndWithAnyRing) {
  RunWell(CudaOptions(2) + "--device cuda --out @/first");
  RunWell(CudaOptions(2) + "--device cuda --out @/second");
  RunWell(CudaOptions(2) + "--device cuda --prefetch 0 --threads 3 --out @/third");
  ExpectSameRun(At("first"), At("second"));
  ExpectSameRun(At("first"), At("third"));
}

TEST_F(CudaTrainEndToEnd, StoppedAndKilledRunsGoOnBitForBit) {
  RunWell(CudaOptions(6) + "--device cuda --out @/whole");
  for (const int signal : {SIGTERM, SIGKILL}) {
    const std::string run = At("run" + std::to_string(signal));
    {
      Process process(Command(CudaOptions(6) + "--device cuda --out " + run));
      while (Content(run + "/metrics.jsonl").find("\"step\":7,") == std::string::npos) {
        if (!process.Poll(std::chrono::milliseconds(2))) break;
      }
      process.Signal(signal);
      process.Wait();
    }
    const ProcessResult rest = RunWell(CudaOptions(6) + "--device cuda --resume --out " + run);
    EXPECT_THAT(rest.err, Not(HasSubstr("not bit for bit")));
    ExpectSameRun(At("whole"), run);
  }
}

TEST_F(CudaTrainEndToEnd, ACheckpointGoesOnOnTheOtherDevice) {
  for (const std::string first : {"cpu", "cuda"}) {
    const std::string second = first == "cpu" ? "cuda" : "cpu";
    const std::string run = At("from_" + first);
    RunWell(CudaOptions(1) + "--device " + first + " --out " + run);
    const ProcessResult rest =
        RunWell(CudaOptions(2) + "--device " + second + " --resume --extend --out " + run);
    EXPECT_THAT(rest.err, HasSubstr("resuming at step 10"));
    EXPECT_THAT(rest.err, HasSubstr("not bit for bit"));
    EXPECT_EQ(SummaryOf(run)["steps"], 20);
    EXPECT_EQ(SummaryOf(run)["device"], second);
  }
}

TEST_F(CudaTrainEndToEnd, FirstLossesAreThoseOfTheCpu) {
  RunWell(CudaOptions(1) + "--out @/cpu");
  RunWell(CudaOptions(1) + "--device cuda --math fp32 --out @/cuda");
  const std::vector<double> cpu = LossesOf(At("cpu"));
  const std::vector<double> cuda = LossesOf(At("cuda"));
  ASSERT_EQ(cpu.size(), 10U);
  ASSERT_EQ(cuda.size(), 10U);
  for (size_t step = 0; step < 3; ++step) EXPECT_NEAR(cuda[step], cpu[step], 1e-3 * cpu[step]);
}

TEST_F(CudaTrainEndToEnd, EvaluatesWeightsFromTheCpu) {
  RunWell(CudaOptions(1) + "--out @/cpu");
  const auto cpu = ParseObject(RunWell("eval @/cpu --json").out);
  const auto cuda = ParseObject(RunWell("eval @/cpu --device cuda --math fp32 --json").out);
  EXPECT_EQ(cuda["device"], "cuda");
  EXPECT_EQ(cuda["images"], cpu["images"]);
  EXPECT_NEAR(cuda["loss"].get<double>(), cpu["loss"].get<double>(),
              1e-3 * cpu["loss"].get<double>());
}

TEST_F(CudaTrainEndToEnd, PartsAreMeasuredAsPlannedAndRepeatable) {
  for (const char* size : {"1", "2", "3"}) {
    const std::string options = CudaOptions(2) + "--device cuda --microbatch " + size + " --out ";
    const std::string first = At(std::string("first") + size);
    const std::string second = At(std::string("second") + size);
    RunWell(options + first);
    RunWell(options + second + " --prefetch 0");
    const auto summary = SummaryOf(first);
    EXPECT_EQ(summary["planned_peak_bytes"], summary["measured_peak_bytes"]) << size;
    EXPECT_EQ(summary["device_allocations_in_steps"], 0) << size;
    EXPECT_EQ(summary["steps"], 20);
    ExpectSameRun(first, second);
  }
}

TEST_F(CudaTrainEndToEnd, FirstLossesInPartsAreThoseOfTheCpu) {
  RunWell(CudaOptions(1) + "--microbatch 3 --out @/cpu");
  RunWell(CudaOptions(1) + "--microbatch 3 --device cuda --math fp32 --out @/cuda");
  const std::vector<double> cpu = LossesOf(At("cpu"));
  const std::vector<double> cuda = LossesOf(At("cuda"));
  ASSERT_EQ(cpu.size(), cuda.size());
  for (size_t step = 0; step < 3; ++step) EXPECT_NEAR(cuda[step], cpu[step], 1e-3 * cpu[step]);
}

TEST_F(CudaTrainEndToEnd, RunsInPartsGoOnBitForBit) {
  const std::string options = "--device cuda --microbatch 3 ";
  RunWell(CudaOptions(4) + options + "--out @/whole");
  RunWell(CudaOptions(4) + options + "--steps 17 --out @/run");
  RunWell(CudaOptions(4) + options + "--resume --extend --out @/run");
  EXPECT_TRUE(WeightsOf(At("whole")) == WeightsOf(At("run")));
}

}  // namespace
}  // namespace thimble
