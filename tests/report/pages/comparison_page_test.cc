#include "thimble/report/pages/comparison_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/toy_record.h"

namespace thimble {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Another plan, another batch, another result.
RunRecord OtherRun() {
  RunRecord run = ToyRun("runs/other");
  run.config.batch = 8;
  run.program.arena_bytes = 20'000;
  PlanRecord& plan = run.program.plans.front();
  plan.arena_bytes = 20'000;
  plan.holdings.resize(3);
  plan.steps.resize(2);
  for (Holding& holding : plan.holdings) holding.live = {0, 2};
  run.summary->measured_peak_bytes = 19'000;
  run.summary->seconds = 3725;
  run.metrics.test_accuracy = {{2, 0.5}};
  return run;
}

TEST(ComparisonPage, PutsRunsSideBySide) {
  const std::string page = ComparisonPage({ToyRun(), OtherRun()});
  EXPECT_THAT(page, HasSubstr("<tr><th></th><th>toy</th><th>other</th></tr>"));
  EXPECT_THAT(page, HasSubstr("<tr><th>arena</th><td>10.00 kB</td><td>20.00 kB</td></tr>"));
  EXPECT_THAT(page, HasSubstr("<tr><th>measured peak, bytes</th><td>9,960</td><td>19,000</td>"));
  EXPECT_THAT(page, HasSubstr("<tr><th>time</th><td>1 min 15 s</td><td>1 h 02 min</td></tr>"));
  EXPECT_THAT(page, HasSubstr("<tr><th>test accuracy</th><td>37.50 %</td><td>50.00 %</td></tr>"));
  EXPECT_THAT(page, HasSubstr("<tr><th>batch</th><td>4</td><td>8</td></tr>"));
  EXPECT_THAT(page, Not(HasSubstr("<tr><th>model</th>")));  // the same
  EXPECT_THAT(page, HasSubstr("<title>other\ntotal 20.00 kB (20,000 bytes)\n"));
  EXPECT_THAT(page, Not(HasSubstr("driver")));
}

TEST(ComparisonPage, RunsWithoutSummaryHaveDashes) {
  RunRecord going_on = OtherRun();
  going_on.summary.reset();
  going_on.metrics = {};
  const std::string page = ComparisonPage({ToyRun(), going_on});
  EXPECT_THAT(page, HasSubstr("<tr><th>process</th><td>20.00 MB</td><td>–</td></tr>"));
  EXPECT_THAT(page, HasSubstr("<tr><th>test accuracy</th><td>37.50 %</td><td>–</td></tr>"));
}

TEST(ComparisonPage, SameSettings) {
  RunRecord again = ToyRun("runs/again");
  again.config.out = "runs/again";
  EXPECT_THAT(ComparisonPage({ToyRun(), again}),
              HasSubstr("None: the runs have the same settings"));
}

TEST(ComparisonPage, NamesAreShortWhereTheyDiffer) {
  EXPECT_THAT(NamesOf({ToyRun("a/x"), ToyRun("b/y")}), ElementsAre("x", "y"));
  EXPECT_THAT(NamesOf({ToyRun("a/x"), ToyRun("b/x")}), ElementsAre("a/x", "b/x"));
}

TEST(ComparisonPage, HostileNames) {
  EXPECT_THAT(ComparisonPage({ToyRun("<script>alert(1)"), OtherRun()}),
              Not(HasSubstr("<script>alert")));
}

TEST(ComparisonPlots, HaveEveryRun) {
  const NamedFiles files = ComparisonPlots({ToyRun(), OtherRun()});
  ASSERT_FALSE(files.empty());
  EXPECT_EQ(files.front().first, "arenas.svg");
  for (const auto& [name, content] : files) {
    EXPECT_THAT(content, HasSubstr(">other")) << name;
    EXPECT_THAT(content, HasSubstr(">toy")) << name;
  }
}

}  // namespace
}  // namespace thimble
