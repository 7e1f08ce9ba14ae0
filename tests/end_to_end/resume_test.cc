// Runs that are stopped or killed and continued: the result must be that of an undisturbed run, bit
// for bit.
#include <chrono>
#include <map>
#include <random>
#include <thread>

#include "tests/data/fake_dataset.h"
#include "tests/end_to_end/thimble_fixture.h"

namespace thimble {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

// Ten steps per epoch (the last one smaller), an evaluation after each.
std::string ResumeOptions(int epochs) {
  return "train --model wrn-10-1 --data shapes:38,6 --batch 4 --lr 0.05 --augment crop-flip "
         "--validation 0 --log-every 1 --checkpoint-every 3 --schedule cosine --threads 1 "
         "--epochs " +
         std::to_string(epochs) + " ";
}

// The last step in metrics.jsonl.
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

// When each file of the run was written last.
std::map<std::string, std::filesystem::file_time_type> TimesOf(const std::string& run) {
  std::map<std::string, std::filesystem::file_time_type> times;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run)) {
    times[entry.path()] = entry.last_write_time();
  }
  return times;
}

class ResumeEndToEnd : public NoReportFixture {
 protected:
  // Kills the run `kills` times, spread over its steps and the time before the first one, then lets
  // it end. Returns how often it was actually killed.
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
    RunWell(ResumeOptions(epochs) + "--out @/whole");
    const int killed = RunWithKills(ResumeOptions(epochs) + "--out @/killed --resume", At("killed"),
                                    kills, 10 * epochs);
    EXPECT_GT(killed, kills / 2);
    ExpectSameRun(At("whole"), At("killed"));
    EXPECT_EQ(SummaryOf(At("killed"))["finished"], true);
  }
};

TEST_F(ResumeEndToEnd, StoppedPolitely) {
  RunWell(ResumeOptions(20) + "--out @/whole");
  {
    Process process(Command(ResumeOptions(20) + "--out @/stopped --json"));
    ASSERT_TRUE(WaitForStep(process, At("stopped"), 13));
    process.Signal(SIGTERM);
    const ProcessResult result = process.Wait();
    EXPECT_EQ(result.exit_code, 128 + SIGTERM) << result.err;
    const auto summary = ParseObject(result.out);
    EXPECT_EQ(summary["finished"], false);
    EXPECT_EQ(summary["stop_signal"], SIGTERM);
    EXPECT_THAT(result.err, HasSubstr("stopped by SIGTERM at step "));
    EXPECT_THAT(result.err, HasSubstr("; continue with: " + summary["continue_command"].text()));
  }
  RunWell("eval @/stopped");
  // The command that was printed, word by word.
  std::string command = SummaryOf(At("stopped"))["continue_command"].get<std::string>();
  ASSERT_EQ(command.find("thimble "), 0U);
  const ProcessResult rest = RunWell(command.substr(8));
  EXPECT_THAT(rest.err, HasSubstr("resuming at step"));
  ExpectSameRun(At("whole"), At("stopped"));
}

// Other threads, ring and scratch may be used after a resume, and --simd is as it was.
TEST_F(ResumeEndToEnd, GoesOnWithOtherMeans) {
  RunWell(ResumeOptions(10) + "--out @/whole");
  {
    Process process(Command(ResumeOptions(10) + "--out @/run"));
    ASSERT_TRUE(WaitForStep(process, At("run"), 5));
    process.Signal(SIGINT);
    EXPECT_EQ(process.Wait().exit_code, 128 + SIGINT);
  }
  RunWell(
      "train --config @/run/config.toml --resume --out @/run --threads 2 --prefetch 0 "
      "--scratch 64k");
  ExpectSameRun(At("whole"), At("run"));
}

TEST_F(ResumeEndToEnd, WinogradGoesOnWithOtherMeans) {
  RunWell(ResumeOptions(5) + "--conv winograd --out @/whole");
  {
    Process process(Command(ResumeOptions(5) + "--conv winograd --out @/run"));
    ASSERT_TRUE(WaitForStep(process, At("run"), 5));
    process.Signal(SIGKILL);
    process.Wait();
  }
  RunWell("train --config @/run/config.toml --resume --out @/run --threads 3 --scratch 512k");
  ExpectSameRun(At("whole"), At("run"));
}

// Its moments and, for their correction, the number of the update are as they were.
TEST_F(ResumeEndToEnd, AdamGoesOnWithOtherMeans) {
  std::string options = ResumeOptions(5) + "--optimizer adam --warmup 12 ";
  options.replace(options.find("--lr 0.05"), 9, "--lr 0.002");
  options.replace(options.find("--schedule cosine"), 17, "--schedule inverse-sqrt:1e-4");
  const std::pair<std::string, std::string> runs[] = {
      {"floats", ""}, {"short", "--precision fp16 --store optimizer=q8 --microbatch 3 "}};
  for (const auto& [name, storage] : runs) {
    const std::string whole = "@/whole_" + name;
    const std::string run = "@/run_" + name;
    RunWell(options + storage + "--out " + whole);
    {
      Process process(Command(options + storage + "--out " + run));
      ASSERT_TRUE(WaitForStep(process, At("run_" + name), 5));
      process.Signal(SIGKILL);
      process.Wait();
    }
    ExpectRefusal(options + storage + "--adam-beta2 0.98 --resume --out " + run, 2,
                  "--adam-beta2 was '0.999' and is now '0.98'");
    RunWell("train --config " + run + "/config.toml --resume --out " + run +
            " --threads 3 --scratch 512k");
    ExpectSameRun(At("whole_" + name), At("run_" + name));
  }
}

TEST_F(ResumeEndToEnd, WithNothingThereStartsAfresh) {
  RunWell(ResumeOptions(1) + "--out @/whole");
  RunWell(ResumeOptions(1) + "--out @/fresh --resume");
  ExpectSameRun(At("whole"), At("fresh"));
}

TEST_F(ResumeEndToEnd, AFinishedRunIsNotTouched) {
  const ProcessResult first = RunWell(ResumeOptions(1) + "--out @/run --json");
  const auto times = TimesOf(At("run"));
  ASSERT_GT(times.size(), 8U);
  const ProcessResult again = RunWell(ResumeOptions(1) + "--out @/run --resume --json");
  EXPECT_EQ(again.out, first.out);
  EXPECT_THAT(again.err, HasSubstr("nothing to do"));
  EXPECT_TRUE(TimesOf(At("run")) == times);
}

TEST_F(ResumeEndToEnd, StoppedBeforeAnythingWasEvaluated) {
  Process process(Command(ResumeOptions(20) + "--out @/run"));
  ASSERT_TRUE(WaitForStep(process, At("run"), 2));
  process.Signal(SIGHUP);
  const ProcessResult result = process.Wait();
  EXPECT_EQ(result.exit_code, 128 + SIGHUP) << result.err;
  EXPECT_THAT(result.out, Not(HasSubstr("accuracy")));
  EXPECT_THAT(result.out, HasSubstr("stopped by SIGHUP at step "));
  EXPECT_THAT(result.out, HasSubstr("before the end; continue with:"));
  EXPECT_TRUE(SummaryOf(At("run"))["test_accuracy"].is_null());
  RunWell("eval @/run");
}

TEST_F(ResumeEndToEnd, ARunFolderIsUsedByOneProcess) {
  Process process(Command(ResumeOptions(40) + "--out @/run"));
  ASSERT_TRUE(WaitForStep(process, At("run"), 1));
  ExpectRefusal(ResumeOptions(40) + "--out @/run --resume", 1,
                "another process is using this run folder");
  ExpectRefusal(ResumeOptions(40) + "--out @/run --overwrite", 1,
                "another process is using this run");
}

// The contents of the data matter, not its path.
TEST_F(ResumeEndToEnd, DataMayMoveButNotChange) {
  const TestFolder data("resumed");
  WriteCifar10(data);
  const std::string options =
      "train --model wrn-10-1 --batch 4 --threads 1 --checkpoint-every 1 --data cifar10:";
  RunWell(options + data.path() + " --steps 2 --out @/run");
  RunWell(options + data.path() + " --steps 4 --out @/whole");
  std::filesystem::copy(data.path(), At("moved"));
  RunWell(options + "@/moved --steps 3 --out @/run --resume --extend");
  std::string batch = Content(At("moved/data_batch_3.bin"));
  batch[1000] = static_cast<char>(batch[1000] ^ 1);
  Put(At("moved/data_batch_3.bin"), batch);
  ExpectRefusal(options + "@/moved --steps 4 --out @/run --resume --extend", 2,
                "--data was 'cifar10, 10 training and 3 test images, crc64:");
  Put(At("moved/data_batch_3.bin"), batch + batch);
  ExpectRefusal(options + "@/moved --steps 4 --out @/run --resume --extend", 2,
                "and is now 'cifar10, 12 training");
  RunWell(options + data.path() + " --steps 4 --out @/run --resume --extend");
  EXPECT_TRUE(WeightsOf(At("run")) == WeightsOf(At("whole")));
}

TEST_F(ResumeEndToEnd, MoreEpochs) {
  std::string options = ResumeOptions(2);
  options.replace(options.find("--schedule cosine"), 17, "--schedule constant");
  RunWell(options + "--out @/whole");
  std::string shorter = options;
  shorter.replace(shorter.find("--epochs 2"), 10, "--epochs 1");
  RunWell(shorter + "--out @/run");
  ExpectRefusal(options + "--out @/run --resume", 2, "add --extend to make it longer");
  const ProcessResult extended = RunWell(options + "--out @/run --resume --extend");
  EXPECT_THAT(extended.err,
              HasSubstr("the learning rate is the same as in one run of this length"));
  ExpectSameRun(At("whole"), At("run"));
}

TEST_F(ResumeEndToEnd, KilledFourTimes) { ExpectKillsChangeNothing(4, 12); }

class SlowResumeEndToEnd : public ResumeEndToEnd {};

TEST_F(SlowResumeEndToEnd, KilledTwentyTimes) { ExpectKillsChangeNothing(20, 60); }

}  // namespace
}  // namespace thimble
