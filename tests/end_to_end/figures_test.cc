// What the program prints about memory is true: its suggestions lead to the stated arenas, and the
// kernel measures the same peak.
#include <map>

#include "tests/data/fake_dataset.h"
#include "tests/end_to_end/thimble_fixture.h"
#include "thimble/base/json.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::Not;

// Options by name, so that suggestions can replace the given ones.
using OptionMap = std::map<std::string, std::string>;

OptionMap With(OptionMap options, const std::string& advice) {
  const Words words = Split(advice);
  for (size_t i = 0; i < words.size(); ++i) {
    const bool has_value = i + 1 < words.size() && !words[i + 1].starts_with("--");
    options[words[i]] = has_value ? words[i + 1] : "";
    i += has_value ? 1 : 0;
  }
  return options;
}

std::string Text(const OptionMap& options) {
  std::string text;
  for (const auto& [name, value] : options) text += " " + name + (value.empty() ? "" : " " + value);
  return text;
}

class FiguresEndToEnd : public ThimbleFixture {
 protected:
  Json Plan(const OptionMap& options, int exit_code = 0) const {
    const ProcessResult result = Run("plan --json" + Text(options));
    EXPECT_EQ(result.exit_code, exit_code) << Text(options) << "\n" << result.err;
    return ParseObject(result.out);
  }
  // The plan with these options has the stated arena.
  void ExpectArena(const OptionMap& options, const Json& arena_bytes) const {
    EXPECT_EQ(PlannedArena(Text(options)), arena_bytes.Dump()) << Text(options);
  }
  // The options in the table of techniques give the stated arenas.
  Json ExpectOffersHold(const OptionMap& options) const {
    const auto plan = Plan(options);
    const auto& savings = plan["savings"];
    EXPECT_EQ(savings["asked_arena_bytes"], plan["arena_bytes"]);
    OptionMap together = options;
    for (const auto& offer : savings["offered"]) {
      ExpectArena(With(options, offer["name"].text()), offer["arena_bytes"]);
      together = With(together, offer["name"].text());
    }
    ExpectArena(together, savings["together_arena_bytes"]);
    return plan;
  }
  // So do all other suggestions.
  void ExpectSuggestionsHold(const OptionMap& options) const {
    const auto plan = ExpectOffersHold(options);
    for (const auto& smallest : plan["smallest"]) {
      ExpectArena(With(options, smallest["options"].text()), smallest["arena_bytes"]);
    }
    OptionMap budgeted = options;
    budgeted["--budget"] = std::to_string(plan["arena_bytes"].get<int64_t>() - 1);
    budgeted["--allow"] = "none";
    const Json refused = Plan(budgeted, 3);
    for (const auto& advice : refused["advice"]["fitting"]) {
      ExpectArena(With(budgeted, advice["options"].text()), advice["arena_bytes"]);
    }
  }
};

TEST_F(FiguresEndToEnd, OffersOfAPlanHold) {
  ExpectOffersHold({{"--model", "wrn-10-1"},
                    {"--threads", "2"},
                    {"--batch", "12"},
                    {"--conv", "winograd"},
                    {"--data", "shapes:30,7"}});
}

class SlowFigures : public FiguresEndToEnd {};

TEST_F(SlowFigures, SuggestionsOfManyPlansHold) {
  const OptionMap model = {{"--model", "wrn-10-1"}, {"--threads", "2"}};
  for (const char* options :
       {"--batch 12 --data shapes:30,7", "--batch 20 --conv winograd",
        "--batch 64 --microbatch 16 --data shapes:200,50", "--batch 30 --recompute cheap",
        "--batch 9 --recompute optimal --scratch 128KiB", "--batch 13 --without placement",
        "--batch 16 --bn-group 8 --microbatch 5", "--batch 1", "--batch 50 --data shapes:40,20"}) {
    ExpectSuggestionsHold(With(model, options));
  }
}

TEST_F(FiguresEndToEnd, ABatchIsCutToTheDataAloudAndEverywhere) {
  const std::string data = " --model wrn-10-1 --data shapes:8,4";
  const std::string said = "--batch 50: there are only 8 training images, so the batch is 8\n";
  const ProcessResult planned = RunWell("plan --json --batch 50" + data);
  EXPECT_EQ(planned.err, said);
  // Bytes and tables are those of the batch that is used.
  EXPECT_EQ(planned.out, RunWell("plan --json --batch 8" + data).out);
  const std::string train = "train --batch 50 --out @/run --epochs 1 --json" + data;
  const ProcessResult trained = RunWell(train);
  EXPECT_THAT(trained.err, HasSubstr(said));
  EXPECT_THAT(Content(At("run/config.toml")), HasSubstr("\nbatch = 8\n"));
  EXPECT_EQ(ParseObject(trained.out)["arena_bytes"], ParseObject(planned.out)["arena_bytes"]);
  EXPECT_EQ(ParseObject(trained.out)["config"]["batch"], 8);
  // The same command continues the run.
  EXPECT_EQ(Run(train + " --resume").exit_code, 0);
}

TEST_F(FiguresEndToEnd, AbsurdBatchesAreRefusedAlike) {
  for (const char* command : {"plan", "train --out @/run"}) {
    ExpectRefusal(std::string(command) + " --model wrn-10-1 --batch 9223372036854775807", 2,
                  "--batch 9223372036854775807: must be at most 1048576");
  }
}

TEST_F(FiguresEndToEnd, AdviceNamesOptionsOfItsCommand) {
  RunWell("train --model wrn-10-1 --data shapes:12,9 --batch 6 --threads 2 --steps 1 --out @/run");
  const int64_t whole = ParseObject(RunWell("eval @/run --json").out)["arena_bytes"].get<int64_t>();
  const ProcessResult refused = Run("eval @/run --budget " + std::to_string(whole - 1));
  ExpectRefusal(refused, 3, "would fit: --batch 5 (", "eval");
  EXPECT_THAT(refused.err, Not(HasSubstr("--microbatch")));
  EXPECT_THAT(refused.err, Not(HasSubstr("--recompute")));
  RunWell("eval @/run --batch 5 --budget " + std::to_string(whole - 1));
  const ProcessResult training =
      Run("train --model wrn-10-1 --data shapes:12,9 --batch 6 --budget 3MB --allow none --out "
          "@/other");
  ExpectRefusal(training, 3, "--recompute optimal (", "train");
  EXPECT_THAT(training.err, HasSubstr("--microbatch "));
}

TEST_F(FiguresEndToEnd, WhateverIsInARunFoldersJsonIsToldWithItsFile) {
  RunWell("train --model wrn-10-1 --data shapes:4,2 --batch 2 --log-every 1 --out @/run");
  for (const char* file : {"plan.json", "summary.json"}) {
    const std::string before = Content(At("run/") + file);
    Put(At("run/") + file, "{\"arena_bytes\":1e999}");
    ExpectRefusal("report @/run", 2, At("run/") + file + ": has a number that is too large");
    Put(At("run/") + file, std::string(1000, '['));
    ExpectRefusal("report @/run", 2, At("run/") + file + ": byte 16: expected at most 16 nested");
    Put(At("run/") + file, before);
  }
  std::filesystem::remove(At("run/summary.json"));  // which has the checksum of the metrics
  Put(At("run/metrics.jsonl"), "{\"step\":1,\"loss\":1e999}\n");
  ExpectRefusal("report @/run", 2, "run/metrics.jsonl: line 1: expected a JSON object");
}

// The process's peak as the kernel reports it at the end, whenever it was reached.
class ProcessPeakEndToEnd : public ThimbleFixture {
 protected:
  void ExpectTruePeak(const std::string& options) {
    const std::string run = At("run" + std::to_string(++runs_));
    const ProcessResult result = RunWell("train --log-every 1 --out " + run + " " + options);
    const int64_t told = SummaryOf(run)["process_peak_bytes"].get<int64_t>();
    constexpr int64_t kPageBytes = 4096;
    EXPECT_LE(std::abs(result.peak_bytes - told), 2 * kPageBytes)
        << options << ": reported " << told << ", by the kernel " << result.peak_bytes;
    EXPECT_THAT(result.out, HasSubstr(std::to_string(told)));
    EXPECT_THAT(Content(run + "/report.html"), HasSubstr("<h2>Memory over one step</h2>"));
  }
  // A whole training in an arena of almost 4 MB: the rest of the process is small too.
  void ExpectSmallProcess(const std::string& options) {
    constexpr int64_t kMiB = 1 << 20;
#ifdef THIMBLE_WITH_CUDA
    constexpr int64_t kMostBytes = 18 * kMiB;  // the CUDA runtime, and each kernel's registration
#else
    constexpr int64_t kMostBytes = 16 * kMiB;
#endif
    const std::string run = At("small");
    const ProcessResult result =
        RunWell("train --model wrn-28-2 --budget 4MB --no-report --out " + run + " " + options);
    EXPECT_LE(result.peak_bytes, kMostBytes);
    const Json summary = SummaryOf(run);
    EXPECT_LE(summary["process_peak_bytes"].get<int64_t>(), kMostBytes);
    // A network that needs far less would prove nothing.
    EXPECT_GT(summary["arena_bytes"].get<int64_t>(), 3'900'000);
    EXPECT_EQ(summary["steps"], 1);
  }
  int runs_ = 0;
};

TEST_F(ProcessPeakEndToEnd, IsTheKernelsLastWord) {
  if (kSanitized) GTEST_SKIP() << "measures the program itself, not the sanitizer";
  ExpectTruePeak("--model wrn-10-1 --data shapes:8,4 --batch 4 --report-every 1 --epochs 2");
  ExpectTruePeak("--model wrn-10-1 --data shapes:8,4 --batch 8 --microbatch 1 --recompute optimal");
  // Here the report needs more memory than the training.
  ExpectTruePeak("--model wrn-40-1 --data shapes:2,1 --batch 1 --steps 1 --scratch 64KiB");
  ExpectTruePeak("--model wrn-10-2 --data shapes:32,8 --batch 32 --steps 1");
  ExpectTruePeak("--model wrn-10-1 --data shapes:8,4 --batch 4 --epochs 0");
}

// What the budget chooses for a batch of 100, given as options, because choosing takes seconds.
TEST_F(ProcessPeakEndToEnd, IsSmallWithASmallBudget) {
  if (kSanitized) GTEST_SKIP() << "measures the program itself, not the sanitizer";
  const TestFolder cifar("small_process");
  WriteCifar10(cifar);
  ExpectSmallProcess("--data cifar10:" + cifar.path() +
                     " --batch 10 --microbatch 5 --precision fp16 --sparsity 0.7 --scratch 64KiB "
                     "--update-in-backward --recompute optimal:4MB --threads 1 --steps 1 "
                     "--allow none");
}

class SlowProcessPeak : public ProcessPeakEndToEnd {};

TEST_F(SlowProcessPeak, IsSmallWhenTheBudgetChooses) {
  if (kSanitized) GTEST_SKIP() << "measures the program itself, not the sanitizer";
  ExpectSmallProcess("--data shapes:100,10 --batch 100 --steps 1");
}

}  // namespace
}  // namespace thimble
