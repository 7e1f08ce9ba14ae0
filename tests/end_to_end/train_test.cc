// `thimble train` and `thimble eval`: the files of a run, and what must not change its results.
#include <unistd.h>

#include "tests/end_to_end/thimble_fixture.h"
#include "thimble/base/json.h"

namespace thimble {
namespace {

using testing::HasSubstr;

// Planned = measured, and nothing else was allocated.
void ExpectMemoryAsPlanned(Json summary) {
  const int64_t arena_bytes = summary["arena_bytes"].get<int64_t>();
  EXPECT_GT(summary["planned_peak_bytes"], 0);
  EXPECT_EQ(summary["planned_peak_bytes"], summary["measured_peak_bytes"]);
  // The last 64-byte line may be only partly filled.
  EXPECT_LE(summary["planned_peak_bytes"], arena_bytes);
  EXPECT_GT(summary["planned_peak_bytes"], arena_bytes - 64);
  EXPECT_EQ(summary["heap_calls_in_steps"], 0);
  EXPECT_EQ(summary["map_calls_in_steps"], 0);
  const int64_t page = sysconf(_SC_PAGESIZE);
  EXPECT_GE(summary["arena_resident_bytes"], arena_bytes / page * page);
  EXPECT_LT(summary["arena_resident_bytes"], arena_bytes + 2 * page);
}

class TrainEndToEnd : public NoReportFixture {
 protected:
  // Trains in a folder of this name; returns the folder.
  std::string Train(const std::string& name, const std::string& options) const {
    RunWell("train --out @/" + name + " " + options);
    return At(name);
  }
};

constexpr const char* kSmall = "--model wrn-10-1 --data shapes:40,10 --batch 16 ";

TEST_F(TrainEndToEnd, WithoutItsReport) {
  const std::string run = Train("run", std::string(kSmall) + "--epochs 1");
  EXPECT_TRUE(std::filesystem::exists(run + "/summary.json"));
  EXPECT_FALSE(std::filesystem::exists(run + "/report.html"));
  EXPECT_FALSE(std::filesystem::exists(run + "/plots"));
  RunWell("report @/run");
  EXPECT_TRUE(std::filesystem::exists(run + "/report.html"));
}

TEST_F(TrainEndToEnd, LeavesAWholeRunFolder) {
  reports_ = true;
  const std::string run = Train("run", std::string(kSmall) + "--epochs 1");
  const Words expected = {
      "config.toml",       "plan.json",          "metrics.jsonl",
      "summary.json",      "report.html",        "weights.safetensors",
      "best.safetensors",  "plots/memory.svg",   "checkpoint/state.safetensors",
      "plots/layers.svg",  "plots/loss.svg",     "plots/arena_map.svg",
      "plots/savings.svg", "plots/accuracy.svg",
  };
  for (const std::string& file : expected) {
    EXPECT_TRUE(std::filesystem::is_regular_file(run + "/" + file)) << file;
  }
  size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run)) {
    files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(files, expected.size());  // no temporary files
  auto plan = ParseObject(Content(run + "/plan.json"));
  auto summary = SummaryOf(run);
  EXPECT_EQ(plan["arena_bytes"], summary["arena_bytes"]);
  EXPECT_EQ(summary["steps"], 3);
  EXPECT_EQ(summary["finished"], true);
  EXPECT_EQ(summary["config"]["batch"], 16);
}

TEST_F(TrainEndToEnd, JsonIsOneObjectAndAlone) {
  const ProcessResult result = RunWell(std::string("train --json --out @/run --steps 2 ") + kSmall);
  EXPECT_EQ(ParseObject(result.out), SummaryOf(At("run")));
  EXPECT_THAT(result.err, HasSubstr("77850 parameters"));
}

TEST_F(TrainEndToEnd, PlannedIsMeasuredForEveryBatchSize) {
  // 200 images: 200 of 1, 28 of 7 and one of 4, six of 32 and one of 8.
  for (const char* size : {"1 --steps 3", "7 --steps 29", "32 --steps 7"}) {
    const std::string run = Train(
        std::string("batch") + size[0],
        std::string("--model wrn-10-1 --data shapes:200,50 --batch ") + size + " --threads 2");
    SCOPED_TRACE(size);
    ExpectMemoryAsPlanned(SummaryOf(run));
  }
}

TEST_F(TrainEndToEnd, PlannedIsMeasuredForEveryModelAndPlan) {
  int number = 0;
  for (const char* options :
       {"--model wrn-10-2 --prefetch 0", "--model wrn-16-1 --momentum 0",
        "--model wrn-10-1 --nesterov", "--model wrn-10-1 --without placement",
        "--model wrn-10-1 --without in-place,order", "--model wrn-10-1 --validation 7",
        "--model wrn-10-1 --threads 3 --scratch 64k", "--model wrn-10-1 --conv winograd",
        "--model wrn-16-1 --conv winograd --threads 3 --scratch 512k"}) {
    const std::string run = Train("run" + std::to_string(++number),
                                  std::string("--data shapes:20,10 --batch 7 ") + options);
    SCOPED_TRACE(options);
    ExpectMemoryAsPlanned(SummaryOf(run));
  }
}

// `plan` and `train` with the same options have the same arena.
TEST_F(TrainEndToEnd, PlanKnowsTheArenaOfTheRun) {
  int number = 0;
  for (const char* options : {"--batch 7", "--batch 100", "--batch 12 --validation 15",
                              "--batch 4 --prefetch 5", "--batch 4 --threads 3 --scratch 32k",
                              "--batch 1 --momentum 0", "--batch 4 --conv winograd"}) {
    const std::string both = std::string(" --model wrn-10-1 --data shapes:20,9 ") + options;
    const std::string run = Train("run" + std::to_string(++number), both + " --epochs 1");
    EXPECT_EQ(PlannedArena(both), SummaryOf(run)["arena_bytes"].Dump()) << options;
  }
}

TEST_F(TrainEndToEnd, ABatchLargerThanTheData) {
  const std::string run = Train("run", "--model wrn-10-1 --data shapes:3,2 --batch 100 --epochs 2");
  ExpectMemoryAsPlanned(SummaryOf(run));
  EXPECT_EQ(SummaryOf(run)["steps"], 2);
}

TEST_F(TrainEndToEnd, OneImageOfEach) {
  ExpectMemoryAsPlanned(SummaryOf(Train("run", "--model wrn-10-1 --data shapes:1,1")));
}

TEST_F(TrainEndToEnd, NothingButTheSeedChangesTheWeights) {
  const std::string base = std::string(kSmall) + "--augment crop-flip --epochs 2 --eval-every 0 ";
  const std::string expected = WeightsOf(Train("base", base + "--threads 1"));
  int number = 0;
  for (const char* options :
       {"--threads 2", "--threads 3", "--threads 1 --prefetch 0", "--threads 1 --prefetch 1",
        "--threads 2 --prefetch 3", "--threads 1 --scratch 64k", "--threads 2 --scratch 64k",
        "--threads 1 --without order,in-place,placement"}) {
    const std::string run = Train("run" + std::to_string(++number), base + options);
    EXPECT_TRUE(WeightsOf(run) == expected) << options;
  }
  EXPECT_FALSE(WeightsOf(Train("seed", base + "--threads 1 --seed 2")) == expected);
}

TEST_F(TrainEndToEnd, NoStepsLeaveTheStart) {
  const std::string run = Train("run", std::string(kSmall) + "--steps 0 --epochs 0");
  auto summary = SummaryOf(run);
  EXPECT_EQ(summary["steps"], 0);
  EXPECT_EQ(summary["planned_peak_bytes"], summary["measured_peak_bytes"]);
  EXPECT_FALSE(WeightsOf(run).empty());
  // And again: the same start.
  const std::string before = WeightsOf(run);
  Train("run", std::string(kSmall) + "--steps 0 --epochs 0 --resume");
  EXPECT_TRUE(WeightsOf(run) == before);
}

TEST_F(TrainEndToEnd, SettingsFromAFileAndTheCommandLineWins) {
  Put(At("settings.toml"),
      "model = \"wrn-10-1\"\ndata = \"shapes:20,5\"\nbatch = 5\nlr = 0.05\nepochs = 1\n");
  const std::string run = Train("run", "--config @/settings.toml --batch 10");
  auto config = SummaryOf(run)["config"];
  EXPECT_EQ(config["batch"], 10);
  EXPECT_EQ(config["lr"], 0.05);
  // The run folder's config.toml is such a file, too.
  EXPECT_TRUE(WeightsOf(Train("again", "--config @/run/config.toml")) == WeightsOf(run));
}

TEST_F(TrainEndToEnd, EvaluationAgreesWithTraining) {
  const std::string run = Train("run", std::string(kSmall) + "--epochs 2 --validation 8");
  auto summary = SummaryOf(run);
  auto by_run = ParseObject(RunWell("eval @/run --json").out);
  EXPECT_EQ(by_run["accuracy"], summary["test_accuracy"]);
  EXPECT_EQ(by_run["loss"], summary["test_loss"]);
  auto by_weights = ParseObject(
      RunWell("eval --weights @/run/weights.safetensors --model wrn-10-1 --data shapes:40,10 "
              "--batch 16 --json")
          .out);
  EXPECT_EQ(by_weights["accuracy"], summary["test_accuracy"]);
  auto best = ParseObject(
      RunWell("eval @/run --weights @/run/best.safetensors --part validation --json").out);
  EXPECT_EQ(best["accuracy"], summary["best_accuracy"]);
  EXPECT_THAT(RunWell("eval @/run").out, HasSubstr("wrn-10-1 test: accuracy"));
}

TEST_F(TrainEndToEnd, StartsFromGivenWeights) {
  const std::string first = Train("first", std::string(kSmall) + "--epochs 1");
  // A run without steps keeps them.
  const std::string start =
      Train("start", std::string(kSmall) + "--epochs 0 --init @/first/weights.safetensors");
  auto before = ParseObject(RunWell("eval @/first --json").out);
  auto after = ParseObject(RunWell("eval @/start --json").out);
  EXPECT_EQ(before["accuracy"], after["accuracy"]);
  EXPECT_EQ(before["loss"], after["loss"]);
  EXPECT_EQ(before["accuracy"], SummaryOf(first)["test_accuracy"]);
  EXPECT_TRUE(std::filesystem::exists(start + "/config.toml"));
}

TEST_F(TrainEndToEnd, FreeNameWithoutOut) {
  // Runs the program in the test's folder.
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  RunWell(std::string("train --steps 1 ") + kSmall);
  std::filesystem::current_path(before);
  EXPECT_TRUE(std::filesystem::exists(At("runs/wrn-10-1-shapes-1/summary.json")));
}

}  // namespace
}  // namespace thimble
