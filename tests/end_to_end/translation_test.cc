// Translation from the command line: numbers and a folder of text are planned, trained, killed,
// continued, evaluated and reported like images.
#include <csignal>

#include "tests/data/text/text_fixtures.h"
#include "tests/end_to_end/thimble_fixture.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Numbers(const std::string& more) {
  return "train --data numbers:400,60 --batch 400 --threads 1 --lr 0.002 --warmup 10 --log-every 1 "
         "--checkpoint-every 3 " +
         more + " ";
}

class TranslationEndToEnd : public NoReportFixture {};

TEST_F(TranslationEndToEnd, TrainsEvaluatesAndReports) {
  reports_ = true;
  const ProcessResult trained =
      RunWell(Numbers("--epochs 3 --recompute blocks --json --out @/run"));
  const Json summary = ParseObject(trained.out);
  EXPECT_EQ(summary["unit"], "tokens");
  EXPECT_EQ(summary["planned_peak_bytes"], summary["measured_peak_bytes"]);
  EXPECT_EQ(summary["heap_calls_in_steps"], 0);
  EXPECT_LT(LossesOf(At("run")).back(), LossesOf(At("run")).front());
  EXPECT_EQ(PlannedArena("--data numbers:400,60 --batch 400 --threads 1 --recompute blocks"),
            std::to_string(summary["arena_bytes"].get<int64_t>()));
  const std::string page = Content(At("run/report.html"));
  EXPECT_THAT(page, HasSubstr("tokens/s"));
  EXPECT_THAT(page, Not(HasSubstr("images/s")));
  const Json evaluation = ParseObject(RunWell("eval @/run --json").out);
  EXPECT_EQ(evaluation["accuracy"], summary["test_accuracy"]);
  EXPECT_GT(evaluation["tokens"].get<int64_t>(), 60);
  EXPECT_THAT(RunWell("eval @/run").out, HasSubstr(" tokens; arena "));
}

TEST_F(TranslationEndToEnd, KillsAndOtherMeansChangeNothing) {
  for (const std::string options : {"", "--microbatch 90 --precision fp16"}) {
    const std::string whole = options.empty() ? "@/whole" : "@/whole16";
    const std::string killed = options.empty() ? "@/killed" : "@/killed16";
    RunWell(Numbers("--epochs 3 " + options) + "--out " + whole);
    const std::string run = At(killed.substr(2));
    Process process(Command(Numbers("--epochs 3 " + options) + "--out " + killed));
    while (MetricsOf(run).size() < 8 && process.Poll(std::chrono::milliseconds(2))) {
    }
    process.Signal(SIGKILL);
    process.Wait();
    RunWell("train --config " + killed + "/config.toml --resume --threads 2 --prefetch 0 --out " +
            killed);
    ExpectSameRun(At(whole.substr(2)), run);
  }
}

TEST_F(TranslationEndToEnd, ProfilesWhatWasPlanned) {
  const Json profile = ParseObject(
      RunWell("profile --data numbers:400,60 --batch 400 --microbatch 100 --repeat 1 --json").out);
  EXPECT_EQ(profile["measured_peak_bytes"], profile["planned_peak_bytes"]);
  EXPECT_GT(profile["tokens_per_second"].number(), 0);
}

TEST_F(TranslationEndToEnd, PlansWithinABudget) {
  const Json plan =
      ParseObject(RunWell("plan --model dynamicconv-tiny --budget 16MB --threads 1 --json").out);
  EXPECT_EQ(plan["fits"], true);
  EXPECT_LE(plan["arena_bytes"].get<int64_t>(), 16'000'000);
  const Json summary = ParseObject(
      RunWell(Numbers("--steps 3 --budget 4MB --allow microbatch --json --out @/small")).out);
  EXPECT_LE(summary["arena_bytes"].get<int64_t>(), 4'000'000);
  EXPECT_EQ(summary["planned_peak_bytes"], summary["measured_peak_bytes"]);
}

// The folder of the benchmark, without data.
TEST_F(TranslationEndToEnd, PlansTheBenchmark) {
  const std::string arena = PlannedArena("--model dynamicconv-iwslt --batch 4000 --threads 2");
  EXPECT_LE(std::stoll(arena), 1'750'000'000);
}

TEST_F(TranslationEndToEnd, ReadsFoldersOfText) {
  const TestFolder folder("translation_end_to_end");
  WriteBitext(folder);
  folder.Write("train.de", "ein haus\n\nzwei häu@@ ser .\nx x x x x\n");
  folder.Write("train.en", "a house\nempty\ntwo houses .\nlong\n");
  folder.Write("test.de", "zwei ga@@ rten\nein haus ist ein haus\n");
  folder.Write("test.en", "two gar@@ den\na house\n");
  const std::string data = "--data bitext:" + folder.path();
  EXPECT_THAT(RunWell("data " + data).out, HasSubstr("3 train, 2 validation, 2 test pairs"));
  const ProcessResult trained =
      RunWell("train --batch 5 --steps 2 --threads 1 --out @/text " + data);
  EXPECT_THAT(trained.err,
              HasSubstr("training pairs left out: 1 with an empty sentence, 1 with one of more "
                        "than 5 tokens"));
  EXPECT_THAT(trained.err, HasSubstr("sentences cut at 5 tokens: 1 of the test set"));
  EXPECT_THAT(trained.err, HasSubstr("validation"));
}

TEST_F(TranslationEndToEnd, BadInput) {
  const TestFolder folder("translation_bad");
  WriteBitext(folder);
  const std::string data = "--data bitext:" + folder.path();
  ExpectRefusal("train --model wrn-10-1 " + data, 2, "is no network for translation");
  ExpectRefusal("train --model dynamicconv-tiny --data shapes", 2, "the data are images");
  ExpectRefusal("train --validation 5 " + data, 2, "only for images");
  ExpectRefusal("train --microbatch 5000 " + data, 2, "--microbatch 5000: must be from 1");
  ExpectRefusal("plan --model dynamicconv-tiny:dropout=2", 2, "dropout=2");
  ExpectRefusal("plan --model dynamicconv-tiny --sparsity 0.5", 2, "");
  folder.Write("train.en", "a house\n");
  ExpectRefusal("train --out @/x " + data, 2, "expected a translation in each");
  folder.Write("train.en", "a house\ntwo \xff .\na garden\n");
  ExpectRefusal("train --out @/x " + data, 2, "line 2 is not UTF-8");
  folder.Write("train.en", "a house\ntwo houses .\na garden\n");
  folder.Write("dict.de.txt", "haus 3\n");
  folder.Write("dict.en.txt", "house 3\nhouse 4\n");
  ExpectRefusal("train --out @/x " + data, 2, "dict.en.txt: line 2");
}

}  // namespace
}  // namespace thimble
