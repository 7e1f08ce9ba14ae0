// Output to standard streams that are closed, full or broken never ends up in data files and never
// ends a run.
#include "tests/end_to_end/thimble_fixture.h"

namespace thimble {
namespace {

using testing::HasSubstr;

class StandardStreamsEndToEnd : public ThimbleFixture {
 protected:
  // Runs it by a shell, with redirections.
  ProcessResult Shell(const std::string& command, const std::string& redirections) const {
    std::string line;
    for (const std::string& word : Command(command)) line += "'" + word + "' ";
    return RunProcess({"/bin/sh", "-c", line + redirections});
  }
  static std::string Training(const std::string& run) {
    return "train --model wrn-10-1 --data shapes:12,4 --batch 4 --threads 1 --out @/" + run;
  }
};

TEST_F(StandardStreamsEndToEnd, RunsTheSameWhateverTheStreamsAre) {
  RunWell(Training("plain"));
  int number = 0;
  for (const auto& [redirections, exit_code] : {std::pair<const char*, int>{"2>&-", 0},
                                                {"<&- 2>/dev/full --resume", 0},
                                                {"2>&1 >/dev/full", 1},
                                                {">&- 2>&-", 1}}) {
    const std::string run = "run" + std::to_string(number++);
    const ProcessResult result = Shell(Training(run), redirections);
    EXPECT_EQ(result.exit_code, exit_code) << redirections;
    EXPECT_EQ(result.out.find("test accuracy") != std::string::npos, exit_code == 0);
    // No progress was written into a file.
    ExpectSameRun(At("plain"), At(run));
    EXPECT_EQ(SummaryOf(At(run))["steps"], 3);
  }
}

TEST_F(StandardStreamsEndToEnd, NobodyReadsTheProgress) {
  std::string training;
  for (const std::string& word : Command(Training("run"))) training += "'" + word + "' ";
  const ProcessResult result = RunProcess(
      {"/usr/bin/env", "bash", "-c", training + " 2>&1 >/dev/null | true; exit ${PIPESTATUS[0]}"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_FALSE(WeightsOf(At("run")).empty());
}

TEST_F(StandardStreamsEndToEnd, LostResultsAreAFailure) {
  RunWell(Training("run"));
  for (const char* command : {"models --json", "plan --model wrn-10-1 --batch 4 --csv", "--help",
                              "--version", "train --help", "data --data shapes:20,5", "eval @/run",
                              "report @/run", "profile --model wrn-10-1 --batch 4 --repeat 1"}) {
    ExpectRefusal(Shell(command, ">/dev/full"), 1,
                  "standard output: cannot write: No space left on device", command);
  }
  ExpectRefusal(Shell("models", ">&-"), 1, "standard output: cannot write: Bad file descriptor",
                "models");
  // A more specific exit code is kept.
  EXPECT_EQ(Shell("plan --model wrn-10-1 --batch 4 --budget 1k", ">/dev/full").exit_code, 3);
}

TEST_F(StandardStreamsEndToEnd, AReaderThatHasEnough) {
  const ProcessResult result = RunProcess({"/usr/bin/env", "bash", "-c",
                                           "(sleep 0.5; '" + ThimbleBinary() +
                                               "' models) | true; "
                                               "exit ${PIPESTATUS[0]}"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "");
}

}  // namespace
}  // namespace thimble
