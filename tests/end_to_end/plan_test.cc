// `thimble plan` and the other commands that only print.
#include "tests/end_to_end/thimble_fixture.h"

namespace thimble {
namespace {

using testing::HasSubstr;

class PlanEndToEnd : public ThimbleFixture {};

TEST_F(PlanEndToEnd, BenchmarkModelAsJson) {
  const ProcessResult result = RunWell("plan --model wrn-28-2 --batch 100 --json");
  EXPECT_EQ(result.err, "");
  auto json = ParseObject(result.out);
  EXPECT_EQ(json["fits"], true);
  EXPECT_EQ(json["parameters"], 1467610);
  const int64_t arena_bytes = json["arena_bytes"].get<int64_t>();
  EXPECT_GE(arena_bytes, 380'000'000);
  EXPECT_LE(arena_bytes, 405'000'000);
  EXPECT_EQ(json["plain_arena_bytes"], arena_bytes);
  EXPECT_LE(json["lower_bound_bytes"], arena_bytes);
  EXPECT_LT(json["kept_bytes"], arena_bytes);
  int64_t sum = 0;
  for (const char* category :
       {"model", "gradients", "optimizer", "activations", "transient", "data", "gaps"}) {
    ASSERT_TRUE(json["categories"].contains(category)) << category;
    sum += json["categories"][category].get<int64_t>();
  }
  EXPECT_EQ(json["categories"].size(), 7U);
  EXPECT_EQ(sum, arena_bytes);
  ASSERT_FALSE(json["techniques"].empty());
  for (auto& technique : json["techniques"]) {
    EXPECT_EQ(technique["class"], "same-bits") << technique;
  }
  auto& flops = json["flops"];
  EXPECT_GT(flops["forward"], 0);
  EXPECT_GT(flops["step"], 2 * flops["forward"].get<int64_t>());
  EXPECT_EQ(flops["recompute"], 0);
}

// Without a terminal nothing is cut, so nothing may need more than the usual 80 columns. Planning
// does not allocate the arena.
TEST_F(PlanEndToEnd, IsQuickAndSmallAndFitsEightyColumns) {
  const ProcessResult result = RunWell("plan --model wrn-28-2 --batch 100");
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  if (kSanitized) GTEST_SKIP() << "measures the program itself, not the sanitizer";
  // Most of the time and memory goes into the smallest arenas, three searches for the best
  // schedule: 0.85 s.
  EXPECT_LT(result.cpu_seconds, 2);
  EXPECT_LT(result.peak_bytes, 32 << 20);
}

TEST_F(PlanEndToEnd, SweepsFromThePlainPlanToTheFloor) {
  const std::string sweep = "plan --model wrn-10-1 --batch 8 --allow fp16 --sweep";
  auto json = ParseObject(RunWell(sweep + " --json --plot @/sweep.svg").out);
  ASSERT_GE(json["points"].size(), 2U);
  EXPECT_EQ(json["points"][0]["arena_bytes"], json["plain_arena_bytes"]);
  EXPECT_THAT(Content(At("sweep.svg")), HasSubstr("</svg>"));
  ExpectRefusal("plan --model wrn-10-1 --plot @/other.svg", 2, "--sweep");
  ExpectRefusal("plan --model wrn-10-1 --csv --sweep", 2, "--csv");
}

TEST_F(PlanEndToEnd, OverBudget) {
  const ProcessResult result =
      Run("plan --model wrn-10-1 --batch 100 --budget 8MB --allow none --json");
  ExpectRefusal(result, 3, "is exceeded by", "plan");
  EXPECT_THAT(result.err, HasSubstr("the budget of 8.00 MB"));
  EXPECT_THAT(result.err, HasSubstr("largest at the peak: "));
  EXPECT_EQ(ParseObject(result.out)["fits"], false);
  ExpectRefusal("plan --model wrn-10-1 --budget 1MB --allow none", 3, "does not fit");
  ExpectRefusal("train --model wrn-10-1 --data shapes:20,5 --budget 1MB --allow none --out @/run",
                3, "does not fit");
  EXPECT_FALSE(std::filesystem::exists(At("run")));
}

// The budget chooses what is needed to fit, says so, and the choice holds for a run.
TEST_F(PlanEndToEnd, ChoosesForTheBudget) {
  const std::string asked = " --model wrn-10-1 --batch 20 --data shapes:20,5 --budget 1MB";
  const auto json = ParseObject(RunWell("plan" + asked + " --json").out);
  EXPECT_EQ(json["fits"], true);
  EXPECT_LE(json["arena_bytes"].get<int64_t>(), 1'000'000);
  const std::string options = json["chosen"]["options"].text();
  EXPECT_THAT(options, HasSubstr("--recompute optimal"));
  const ProcessResult run = RunWell("train" + asked + " --steps 2 --json --out @/run");
  EXPECT_THAT(run.err, HasSubstr(options));
  const auto summary = ParseObject(run.out);
  EXPECT_EQ(summary["arena_bytes"], json["arena_bytes"]);
  EXPECT_EQ(summary["measured_peak_bytes"], summary["planned_peak_bytes"]);
  // The folder's configuration has the choice: nothing is chosen again.
  RunWell("train --resume --extend --steps 3 --out @/run --config @/run/config.toml");
}

TEST_F(PlanEndToEnd, SaysTheFloorIfNothingFits) {
  const std::string asked = "plan --model wrn-10-1 --batch 20 --data shapes:20,5 ";
  ExpectRefusal(asked + "--budget 100kB", 3, "the smallest arena with what is allowed has");
  ExpectRefusal(asked + "--budget 1MB --allow same-bits", 3, "--allow lossy would choose --");
  ExpectRefusal(asked + "--budget 1MB --allow magic", 2, "--allow magic: expected none, same-bits");
}

TEST_F(PlanEndToEnd, BudgetsAsPeopleWriteThem) {
  EXPECT_THAT(RunWell("plan --model wrn-10-1 --batch 4 --budget 1.1GiB").out,
              HasSubstr("fits the budget of 1.181 GB"));
  EXPECT_THAT(RunWell("plan --model wrn-10-1 --batch 4 --budget 2tb").out,
              HasSubstr("fits the budget of 2.000 TB"));
}

TEST_F(PlanEndToEnd, WithinBudget) {
  const ProcessResult result = RunWell("plan --model wrn-10-1 --batch 4 --budget 1GB");
  EXPECT_THAT(result.out, HasSubstr("fits the budget of 1.000 GB"));
  EXPECT_EQ(result.err, "");
}

// A budget of exactly what is needed fits; one byte less does not.
TEST_F(PlanEndToEnd, BudgetToTheByte) {
  const std::string command = "plan --model wrn-10-1 --batch 4 --data shapes:8,4 --json";
  const int64_t needed = ParseObject(RunWell(command).out)["arena_bytes"].get<int64_t>();
  RunWell(command + " --budget " + std::to_string(needed));
  EXPECT_EQ(Run(command + " --allow none --budget " + std::to_string(needed - 1)).exit_code, 3);
}

TEST_F(PlanEndToEnd, LeavingPassesOutCosts) {
  const std::string command = "plan --model wrn-10-1 --batch 4 --json";
  auto with = ParseObject(RunWell(command).out);
  auto without = ParseObject(RunWell(command + " --without placement,in-place").out);
  EXPECT_GT(without["arena_bytes"], with["arena_bytes"]);
  EXPECT_EQ(without["plain_arena_bytes"], with["arena_bytes"]);
}

TEST_F(PlanEndToEnd, SaysWhenResultsAreEqualToRoundingOnly) {
  EXPECT_THAT(RunWell("plan --model wrn-10-1 --batch 10").out, Not(HasSubstr("rounding")));
  EXPECT_THAT(RunWell("plan --model wrn-10-1 --batch 10 --conv winograd").out,
              HasSubstr("winograd for 12 of 83 nodes: equal up to rounding"));
  const auto plan =
      ParseObject(RunWell("plan --model wrn-10-1 --batch 10 --conv winograd --json").out);
  EXPECT_EQ(plan["techniques"][2]["name"], "kernels");
  EXPECT_EQ(plan["techniques"][2]["class"], "equal");
  EXPECT_LT(plan["plain_arena_bytes"], plan["arena_bytes"]);
}

TEST_F(PlanEndToEnd, CifarNeedsNoFilesToPlan) {
  RunWell("plan --model wrn-10-1 --data cifar10");
  RunWell("plan --model wrn-10-1 --data cifar100:/nowhere");
}

TEST_F(PlanEndToEnd, SaysWhatWouldFit) {
  const std::string command =
      "plan --model wrn-10-1 --batch 64 --data shapes:640,64 --budget 4MB --allow none";
  const ProcessResult result = Run(command + " --json");
  EXPECT_EQ(result.exit_code, 3);
  const auto json = ParseObject(result.out);
  const int64_t batch = json["largest_batch"].get<int64_t>();
  EXPECT_GT(batch, 0);
  EXPECT_LT(batch, 64);
  EXPECT_EQ(json["missing_bytes"], json["arena_bytes"].get<int64_t>() - 4'000'000);
  EXPECT_THAT(Run(command).out, HasSubstr("would fit: --batch " + std::to_string(batch) + ": "));
  RunWell("plan --model wrn-10-1 --data shapes:640,64 --budget 4MB --batch " +
          std::to_string(batch));
}

TEST_F(PlanEndToEnd, CsvIsOneTable) {
  const std::string csv = RunWell("plan --model wrn-10-1 --batch 4 --csv").out;
  EXPECT_THAT(csv, testing::StartsWith("category,peak_bytes,largest_bytes\nmodel,"));
  EXPECT_THAT(RunWell("plan --model wrn-10-1 --batch 4 --csv --layers").out,
              HasSubstr("\nblock1.layer.0.conv1,9216,"));
  ExpectRefusal("plan --model wrn-10-1 --csv --json", 2, "--csv");
}

// The output on a terminal of 60 columns.
class TerminalEndToEnd : public ThimbleFixture {
 protected:
  std::string Seen(const Words& environment) const {
    Words command = {"/usr/bin/env", "COLUMNS=60", "TERM=xterm"};
    command.insert(command.end(), environment.begin(), environment.end());
    const std::string plan = ThimbleBinary() + " plan --model wrn-10-1 --batch 4 --layers";
    command.insert(command.end(), {"/usr/bin/script", "-qec", plan, "/dev/null"});
    const ProcessResult result = RunProcess(command);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  }
};

TEST_F(TerminalEndToEnd, TablesFitAndAreColoured) {
  const std::string text = Seen({});
  EXPECT_THAT(text, HasSubstr("\x1b[1m"));
  EXPECT_THAT(text, HasSubstr("…"));
}

TEST_F(TerminalEndToEnd, NoColorMeansNoEscapes) {
  const std::string text = Seen({"NO_COLOR=1"});
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("the peak is")) continue;  // a sentence
    const auto continued = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; };
    const auto bytes = std::count_if(line.begin(), line.end(), continued);
    EXPECT_LE(static_cast<int64_t>(line.size()) - bytes, 61) << line;  // with a carriage return
  }
}

TEST_F(TerminalEndToEnd, DumbTerminalsAndPipesGetPlainText) {
  EXPECT_EQ(Seen({"TERM=dumb"}).find('\x1b'), std::string::npos);
  const std::string piped = RunWell("plan --model wrn-10-1 --batch 4 --layers").out;
  EXPECT_EQ(piped.find('\x1b'), std::string::npos);
  EXPECT_EQ(piped.find("…"), std::string::npos);
}

// One line rewritten in place, narrower than the terminal, which reports its own width. The run is
// long enough for the bar, which is drawn every 0.2 s, to appear on fast machines, too.
TEST_F(TerminalEndToEnd, ProgressNeverWraps) {
  const std::string training = ThimbleBinary() +
                               " train --model wrn-10-1 --data shapes:120,4 --batch 2 --threads 1 "
                               "--epochs 12 --eval-every 0 --out " +
                               At("run") + " >/dev/null";
  const ProcessResult result =
      RunProcess({"/usr/bin/env", "-u", "COLUMNS", "TERM=xterm", "/usr/bin/script", "-qec",
                  "stty cols 44; " + training, "/dev/null"});
  EXPECT_EQ(result.exit_code, 0) << result.out;
  int bars = 0;
  std::istringstream pieces(result.out);
  for (std::string piece; std::getline(pieces, piece, '\r');) {
    if (piece.find("step ") == std::string::npos) continue;
    ++bars;
    EXPECT_THAT(piece, testing::StartsWith("\x1b[K"));
    EXPECT_LT(piece.size() - 3, 44U) << piece;
    EXPECT_EQ(piece.find('\n'), std::string::npos) << piece;
  }
  EXPECT_GT(bars, 0) << result.out;
}

TEST_F(PlanEndToEnd, CommandsThatTell) {
  EXPECT_THAT(RunWell("models").out, HasSubstr("wrn-"));
  EXPECT_FALSE(ParseObject(RunWell("models --json").out)["simd"].empty());
  EXPECT_THAT(RunWell("data --data shapes:20,5").out, HasSubstr("20 train, 0 validation, 5 test"));
  EXPECT_EQ(ParseObject(RunWell("data --data shapes:20,5 --json").out)["test"], 5);
  EXPECT_THAT(RunWell("--help").out, HasSubstr("train"));
  const std::string help = RunWell("train --help").out;
  EXPECT_THAT(help, HasSubstr("--budget SIZE "));
  EXPECT_THAT(help, HasSubstr("side (default: 100)\n"));
  for (const char* group : {"What", "How", "Memory", "Where and files", "Output"}) {
    EXPECT_THAT(help, HasSubstr(std::string("\n") + group + ":\n"));
  }
  EXPECT_THAT(RunWell("--version").out,
              testing::MatchesRegex("thimble [0-9.]+\nSIMD: .*\nGPU code: .*\n"));
}

}  // namespace
}  // namespace thimble
