// Runs that are stopped or killed and go on: the end must be that of an undisturbed run, bit for
// bit.
#include <chrono>
#include <random>
#include <thread>

#include "tests/end_to_end/thimble_fixture.h"

namespace thimble {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

// Ten steps per epoch (the last one smaller), an evaluation after each.
std::string Options(int epochs) {
  return "train --model wrn-10-1 --data shapes:38,6 --batch 4 --lr 0.05 --augment crop-flip "
         "--validation 0 --log-every 1 --checkpoint-every 3 --schedule cosine --threads 1 "
         "--epochs " +
         std::to_string(epochs) + " ";
}

// The last step that metrics.jsonl tells of.
int64_t LastStep(const std::string& run) {
  const std::string text = Content(run + "/metrics.jsonl");
  const std::string key = "\"step\":";
  const size_t at = text.rfind(key);
  return at == std::string::npos ? 0 : std::atoll(text.c_str() + at + key.size());
}

// Waits until the run is at `step`; false if it ended before.
bool WaitForStep(Process& process, const std::string& run, int64_t step) {
  while (LastStep(run) < step) {
    if (!process.Poll(milliseconds(2))) return false;
  }
  return true;
}

class ResumeEndToEnd : public ThimbleFixture {
 protected:
  // Kills the run `kills` times, spread over its steps and the time before the first one, then lets
  // it end. Returns how often it was really killed.
  int RunWithKills(const std::string& command, const std::string& run, int kills, int64_t steps) {
    std::mt19937 random(20190424);
    const auto pause = [&](int most) {
      std::this_thread::sleep_for(
          milliseconds(std::uniform_int_distribution<int>(0, most)(random)));
    };
    int killed = 0;
    for (int kill = 0; kill < kills; ++kill) {
      Process process(Command(command));
      // Every fourth comes while the program starts, the others somewhere within a step or a save.
      const bool early = kill % 4 == 0;
      if (!early) WaitForStep(process, run, steps * kill / kills);
      pause(early ? 60 : 25);
      process.Signal(SIGKILL);
      killed += process.Wait().signal == SIGKILL ? 1 : 0;
    }
    RunWell(command);
    return killed;
  }

  void ExpectKillsChangeNothing(int kills, int epochs) {
    RunWell(Options(epochs) + "--out @/whole");
    const int killed =
        RunWithKills(Options(epochs) + "--out @/killed --resume", At("killed"), kills, 10 * epochs);
    EXPECT_GT(killed, kills / 2);
    ExpectSameRun(At("whole"), At("killed"));
    EXPECT_EQ(SummaryOf(At("killed"))["finished"], true);
  }
};

TEST_F(ResumeEndToEnd, StoppedPolitely) {
  RunWell(Options(20) + "--out @/whole");
  {
    Process process(Command(Options(20) + "--out @/stopped --json"));
    ASSERT_TRUE(WaitForStep(process, At("stopped"), 13));
    process.Signal(SIGTERM);
    const ProcessResult result = process.Wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("continue with --resume --out " + At("stopped")));
    EXPECT_EQ(ParseObject(result.out)["finished"], false);
  }
  const ProcessResult rest = RunWell(Options(20) + "--out @/stopped --resume");
  EXPECT_THAT(rest.err, HasSubstr("resuming at step"));
  ExpectSameRun(At("whole"), At("stopped"));
}

// Other threads, ring and scratch may be used after a resume, and --simd is as it was.
TEST_F(ResumeEndToEnd, GoesOnWithOtherMeans) {
  RunWell(Options(10) + "--out @/whole");
  {
    Process process(Command(Options(10) + "--out @/run"));
    ASSERT_TRUE(WaitForStep(process, At("run"), 5));
    process.Signal(SIGINT);
    EXPECT_EQ(process.Wait().exit_code, 0);
  }
  RunWell(
      "train --config @/run/config.toml --resume --out @/run --threads 2 --prefetch 0 "
      "--scratch 64k");
  ExpectSameRun(At("whole"), At("run"));
}

TEST_F(ResumeEndToEnd, WinogradGoesOnWithOtherMeans) {
  RunWell(Options(5) + "--conv winograd --out @/whole");
  {
    Process process(Command(Options(5) + "--conv winograd --out @/run"));
    ASSERT_TRUE(WaitForStep(process, At("run"), 5));
    process.Signal(SIGKILL);
    process.Wait();
  }
  RunWell("train --config @/run/config.toml --resume --out @/run --threads 3 --scratch 512k");
  ExpectSameRun(At("whole"), At("run"));
}

TEST_F(ResumeEndToEnd, WithNothingThereStartsAfresh) {
  RunWell(Options(1) + "--out @/whole");
  RunWell(Options(1) + "--out @/fresh --resume");
  ExpectSameRun(At("whole"), At("fresh"));
}

TEST_F(ResumeEndToEnd, AFinishedRunJustFinishesAgain) {
  RunWell(Options(1) + "--out @/run");
  const std::string weights = WeightsOf(At("run"));
  const Words metrics = MetricsOf(At("run"));
  RunWell(Options(1) + "--out @/run --resume");
  EXPECT_TRUE(WeightsOf(At("run")) == weights);
  EXPECT_EQ(MetricsOf(At("run")), metrics);
  EXPECT_EQ(SummaryOf(At("run"))["finished"], true);
}

TEST_F(ResumeEndToEnd, MoreEpochs) {
  std::string options = Options(2);
  options.replace(options.find("--schedule cosine"), 17, "--schedule constant");
  RunWell(options + "--out @/whole");
  std::string shorter = options;
  shorter.replace(shorter.find("--epochs 2"), 10, "--epochs 1");
  RunWell(shorter + "--out @/run");
  RunWell(options + "--out @/run --resume");
  ExpectSameRun(At("whole"), At("run"));
}

TEST_F(ResumeEndToEnd, KilledFourTimes) { ExpectKillsChangeNothing(4, 12); }

class SlowResumeEndToEnd : public ResumeEndToEnd {};

TEST_F(SlowResumeEndToEnd, KilledTwentyTimes) { ExpectKillsChangeNothing(20, 60); }

}  // namespace
}  // namespace thimble
