#include "thimble/report/pages/report_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/made_frontier.h"
#include "tests/report/toy_record.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> NamesOf(const NamedFiles& files) {
  std::vector<std::string> names;
  for (const auto& [name, content] : files) names.push_back(name);
  return names;
}

TEST(ReportPage, HasTotalsCategoriesAndCommand) {
  const std::string page = ReportPage(ToyRun());
  EXPECT_THAT(page, HasSubstr("<h1>toy-net on shapes:10,6</h1>"));
  EXPECT_THAT(page, HasSubstr("<dt>arena</dt><dd>10.00 kB<small>10,000 bytes</small>"));
  EXPECT_THAT(page, HasSubstr("<dt>plain plan</dt><dd>15.00 kB<small>1.50x the arena</small>"));
  EXPECT_THAT(page, HasSubstr("<dt>planned peak</dt><dd>9.96 kB<small>9,960 bytes</small>"));
  EXPECT_THAT(page, HasSubstr("<small>as planned, to the byte</small>"));
  EXPECT_THAT(page, HasSubstr("<dt>process</dt><dd>20.00 MB"));
  EXPECT_THAT(page, HasSubstr("<tr><th>activations</th><td>4.00 kB</td><td>4,000</td><td>40.0 %"));
  EXPECT_THAT(page, HasSubstr("<tr><th>gaps</th><td>1.00 kB</td><td>1,000</td><td>10.0 %"));
  EXPECT_THAT(page, HasSubstr("thimble train --model toy-net</pre>"));
  EXPECT_THAT(page, HasSubstr("Thimble 0.1.0"));
  EXPECT_THAT(page, HasSubstr("batch = 4\n"));
  EXPECT_THAT(page, Not(HasSubstr("driver")));
}

TEST(ReportPage, GpuRunsHaveTheDriversFigures) {
  RunRecord run = ToyRun();
  run.summary->device_memory.driver_bytes = 900'000'000;
  run.summary->device_memory.context_bytes = 500'000'000;
  EXPECT_THAT(ReportPage(run), HasSubstr("<dt>GPU (from driver)</dt><dd>900.00 MB<small>of which "
                                         "context 500.00 MB</small>"));
}

TEST(ReportPage, ARunThatGoesOnSaysSo) {
  RunRecord run = ToyRun();
  run.summary.reset();
  run.metrics = {};
  run.metrics.last_line_torn = true;
  const std::string page = ReportPage(run);
  EXPECT_THAT(page, HasSubstr("This run has no summary yet"));
  EXPECT_THAT(page, HasSubstr("metrics.jsonl has no values yet."));
  EXPECT_THAT(page, HasSubstr("The last line of metrics.jsonl is incomplete"));
  EXPECT_THAT(page, Not(HasSubstr("measured peak</dt>")));
}

TEST(ReportPage, PlannedAndMeasuredThatDiffer) {
  RunRecord run = ToyRun();
  run.summary->measured_peak_bytes = 9'996;
  const std::string page = ReportPage(run);
  EXPECT_THAT(page, HasSubstr("<small>9,996 bytes</small>"));
  EXPECT_THAT(page, Not(HasSubstr("to the byte")));
}

TEST(ReportPage, NothingFromFilesBecomesMarkup) {
  const std::string hostile = "</pre></svg></style><script>alert(1)</script>\"'";
  RunRecord run = ToyRun(hostile);
  run.config.model = run.config.data = run.config.schedule = hostile;
  PlanRecord& plan = run.program.plans.front();
  plan.name = plan.device = hostile;
  for (StepRecord& step : plan.steps) step.op = step.layer = step.phase = hostile;
  for (Holding& holding : plan.holdings) {
    holding.name = holding.layer = holding.phase = holding.shape = hostile;
  }
  for (TechniqueRecord& technique : plan.techniques) {
    technique.name = technique.exactness = technique.what = technique.done = hostile;
  }
  TrainSummary& summary = *run.summary;
  summary.device_name = summary.device = summary.math = summary.simd = hostile;
  summary.command = summary.version = hostile;
  const std::string page = ReportPage(run);
  EXPECT_THAT(page, Not(HasSubstr("alert(1)</script>")));
  EXPECT_EQ(CountOf(page, "<script"), 1U);  // ours
  EXPECT_EQ(CountOf(page, "</style>"), 1U);
  for (const auto& [name, content] : ReportPlots(run)) {
    EXPECT_THAT(content, Not(HasSubstr("<script"))) << name;
  }
}

TEST(ReportPlots, OnlyWhatThereIs) {
  RunRecord run = ToyRun();
  EXPECT_THAT(NamesOf(ReportPlots(run)),
              testing::ElementsAre("memory.svg", "arena_map.svg", "layers.svg", "loss.svg",
                                   "accuracy.svg", "learning_rate.svg"));
  for (const auto& [name, content] : ReportPlots(run)) EXPECT_THAT(content, StartsWith("<?xml "));
  run.metrics = {};
  run.metrics.loss_scale = {{1, 1024}};
  run.savings = Savings();
  run.frontier = MadeFrontier();
  EXPECT_THAT(ReportPage(run), HasSubstr("<h2>What other budgets would choose</h2>"));
  EXPECT_THAT(NamesOf(ReportPlots(run)),
              testing::ElementsAre("memory.svg", "arena_map.svg", "layers.svg", "savings.svg",
                                   "frontier.svg", "loss_scale.svg"));
}

}  // namespace
}  // namespace thimble
