#include "thimble/report/pages/report_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/toy_record.h"
#include "tests/train/file_fixture.h"
#include "tests/train/tiny_run.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/plan/plan_json.h"
#include "thimble/report/pages/comparison_page.h"
#include "thimble/train/options/options.h"
#include "thimble/train/run_folder/metrics.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

struct Listener final : TrainObserver {
  void OnStart(const TrainingProgram& /*program*/, const std::string& run_folder) override {
    folder = run_folder;
  }
  void OnStep(const Progress& progress) override { steps = progress.step; }
  void OnEpoch(const EpochReport& report) override { epochs = report.epoch; }
  void OnMessage(const std::string& line) override { messages.push_back(line); }
  void OnFinish(const TrainSummary& summary) override { finished_steps = summary.steps; }
  std::string folder;
  int64_t steps = 0, epochs = 0, finished_steps = 0;
  std::vector<std::string> messages;
};

class ReportWriterTest : public FileFixture {
 protected:
  ReportWriterTest() {
    const RunRecord run = ToyRun();
    Put(folder_ + "/config.toml", ToToml(run.config));
    Put(folder_ + "/plan.json", ToJson(run.program));
    Put(folder_ + "/summary.json", SummaryJson(*run.summary, run.config));
  }
  bool Written() const { return std::filesystem::exists(ReportPath(folder_)); }
};

TEST_F(ReportWriterTest, WritesPageAndPlots) {
  ASSERT_TRUE(WriteReport(folder_, ReportPath(folder_), PlotsFolder(folder_), BuiltinOps()).ok());
  EXPECT_THAT(Content(folder_ + "/report.html"), HasSubstr("9,000 bytes"));
  EXPECT_THAT(Content(folder_ + "/plots/memory.svg"), StartsWith("<?xml"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/report.html.tmp"));
}

TEST_F(ReportWriterTest, WhatCannotBeReadOrWritten) {
  const auto unread =
      WriteReport(folder_ + "/nothing", folder_ + "/x.html", folder_ + "/x", BuiltinOps());
  EXPECT_EQ(unread.error().kind, ErrorKind::kBadInput);
  const auto unwritten =
      WriteReport(folder_, folder_ + "/no/such/x.html", folder_ + "/x", BuiltinOps());
  EXPECT_EQ(unwritten.error().kind, ErrorKind::kFailed);
  const auto no_folder =
      WriteReport(folder_, ReportPath(folder_), folder_ + "/plan.json/plots", BuiltinOps());
  EXPECT_EQ(no_folder.error().kind, ErrorKind::kFailed);
}

TEST_F(ReportWriterTest, ComparesWithAndWithoutPlots) {
  ASSERT_TRUE(WriteComparison({folder_, folder_}, folder_ + "/c.html", "").ok());
  EXPECT_THAT(Content(folder_ + "/c.html"), HasSubstr("2 runs"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/arenas.svg"));
  ASSERT_TRUE(WriteComparison({folder_, folder_}, folder_ + "/c.html", folder_ + "/p").ok());
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/p/arenas.svg"));
  const auto many = WriteComparison(std::vector<std::string>(kMostCompared + 1, folder_),
                                    folder_ + "/d.html", "");
  EXPECT_EQ(many.error().message, "13 runs: at most 12 can be compared");
}

TEST_F(ReportWriterTest, PassesEverythingOnAndWritesAtTheEnd) {
  Listener listener;
  ReportWriter writer(listener, 0, BuiltinOps());
  writer.OnStart(TrainingProgram{}, folder_);
  writer.OnStep({.step = 3});
  writer.OnEpoch({.epoch = 1});
  writer.OnMessage("a message");
  EXPECT_FALSE(Written());
  writer.OnFinish(*ToyRun().summary);
  EXPECT_TRUE(Written());
  EXPECT_EQ(listener.folder, folder_);
  EXPECT_EQ(listener.steps, 3);
  EXPECT_EQ(listener.epochs, 1);
  EXPECT_EQ(listener.finished_steps, 2);
  EXPECT_EQ(listener.messages,
            (std::vector<std::string>{"a message", "report: " + folder_ + "/report.html"}));
}

TEST_F(ReportWriterTest, EverySoManyEpochs) {
  Listener listener;
  ReportWriter writer(listener, 2, BuiltinOps());
  writer.OnStart(TrainingProgram{}, folder_);
  writer.OnEpoch({.epoch = 1});
  EXPECT_FALSE(Written());
  writer.OnEpoch({.epoch = 2});
  EXPECT_TRUE(Written());
  EXPECT_THAT(listener.messages, IsEmpty());
}

TEST_F(ReportWriterTest, AReportThatFailsIsAMessage) {
  Listener listener;
  ReportWriter writer(listener, 1, BuiltinOps());
  Put(folder_ + "/plan.json", "{");
  writer.OnStart(TrainingProgram{}, folder_);
  writer.OnEpoch({.epoch = 1});
  writer.OnFinish({});
  ASSERT_EQ(listener.messages.size(), 2U);
  EXPECT_EQ(listener.messages[0],
            "no report: " + folder_ + "/plan.json: is truncated or not JSON: byte 2 is unexpected");
}

// Drawing the report in this process may itself raise the peak of the process; under a sanitizer,
// which keeps freed memory for a while, it always does.
std::string WithoutProcessPeak(std::string page) {
  const size_t begin = page.find("<dt>process</dt>");
  EXPECT_NE(begin, std::string::npos);
  return page.erase(begin, page.find("</div>", begin) - begin);
}

TEST_F(ReportWriterTest, OfARealRun) {
  TrainConfig config = TinyConfig();
  config.out = folder_ + "/run";
  config.allow = "fp16";
  Listener listener;
  ReportWriter writer(listener, 0, BuiltinOps());
  const auto summary = Train(config, BuiltinOps(), writer);
  ASSERT_TRUE(summary.ok()) << summary.error().message;
  auto run = ReadRunFolder(config.out);
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_EQ(run->summary->json, summary->json);
  EXPECT_EQ(run->metrics.loss.size(), 3U);
  EXPECT_EQ(run->metrics.test_accuracy.size(), 1U);
  run->savings = FindRunSavings(*run, BuiltinOps());
  ASSERT_TRUE(run->savings.has_value());
  EXPECT_EQ(run->savings->asked_arena_bytes, summary->plain_arena_bytes);
  EXPECT_EQ(WithoutProcessPeak(Content(config.out + "/report.html")),
            WithoutProcessPeak(ReportPage(*run)));
  const std::vector<FrontierPoint> frontier = FindRunFrontier(*run, BuiltinOps());
  ASSERT_FALSE(frontier.empty());
  EXPECT_EQ(frontier.front().arena_bytes, summary->plain_arena_bytes);
  // A plan of another version: no savings are shown.
  run->program.arena_bytes += 64;
  EXPECT_FALSE(FindRunSavings(*run, BuiltinOps()).has_value());
  EXPECT_TRUE(FindRunFrontier(*run, BuiltinOps()).empty());
}

}  // namespace
}  // namespace thimble
