#include "thimble/report/pages/run_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/report/toy_record.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(RunText, SaysMemoryAccuracyAndSpeed) {
  EXPECT_EQ(ResultText(ToyRun()),
            "Trained in an arena of 10.00 kB, 1/1.50 of the plain plan's 15.00 kB; planned and "
            "measured peak agree to the byte. Test accuracy 37.50 % after 2 steps, 12.5 images/s.");
  EXPECT_EQ(WhatRuns(ToyRun()), "toy-net on shapes:10,6, batch 4, cpu");
  RunRecord parts = ToyRun();
  parts.config.microbatch = 3;
  EXPECT_EQ(WhatRuns(parts), "toy-net on shapes:10,6, batch 4 in parts of 2, cpu");
  parts.config.batch = 7;
  EXPECT_EQ(WhatRuns(parts), "toy-net on shapes:10,6, batch 7 in parts of at most 3, cpu");
  parts.config.batch = parts.config.microbatch = 4;
  EXPECT_EQ(WhatRuns(parts), WhatRuns(ToyRun()));
}

TEST(RunText, PlainRunsAndDifferencesAreNamed) {
  RunRecord run = ToyRun();
  run.summary->plain_arena_bytes = run.summary->arena_bytes;
  run.summary->measured_peak_bytes += 64;
  const std::string text = ResultText(run);
  EXPECT_THAT(text, HasSubstr("10.00 kB, the plain plan; planned and measured peak differ: 9,960 "
                              "and 10,024 bytes."));
  EXPECT_THAT(text, Not(HasSubstr("agree")));
}

TEST(RunText, RunsThatGoOn) {
  RunRecord run = ToyRun();
  run.summary.reset();
  EXPECT_EQ(
      ResultText(run),
      "This run has no summary yet: it is still running, or was killed. Planned arena 10.00 kB; "
      "2 steps in its metrics so far.");
  EXPECT_EQ(TestAccuracy(run), 0.375);
  run.metrics = {};
  EXPECT_EQ(StepsDone(run), 0);
  EXPECT_EQ(TestAccuracy(run), std::nullopt);
}

TEST(RunText, ASummaryOfAnEarlierPartOfTheRun) {
  RunRecord run = ToyRun();
  run.metrics.loss.push_back({7, 1});
  EXPECT_THAT(ResultText(run),
              HasSubstr("The run continued after that: its metrics reach step 7."));
  run = ToyRun();
  run.summary->finished = false;
  EXPECT_THAT(ResultText(run), HasSubstr("It was stopped early."));
}

TEST(RunText, Numbers) {
  EXPECT_EQ(Percent(0.12345), "12.35 %");
  EXPECT_EQ(DurationText(12.52), "12.5 s");
  EXPECT_EQ(DurationText(75), "1 min 15 s");
  EXPECT_EQ(DurationText(3725), "1 h 02 min");
  EXPECT_THAT(DurationText(1e300), HasSubstr(" h "));
  TrainSummary summary;
  summary.examples_per_second = 39684.2;
  EXPECT_EQ(RateText(summary), "39,684 images/s");
  EXPECT_EQ(RateText(*ToyRun().summary), "12.5 images/s");
  EXPECT_EQ(PlainRatio(*ToyRun().summary), "1.50x");
  EXPECT_EQ(PlainRatio({}), "–");
}

TEST(RunName, IsTheLastPart) {
  EXPECT_EQ(RunName("runs/first"), "first");
  EXPECT_EQ(RunName("runs/first//"), "first");
  EXPECT_EQ(RunName("runs/first/."), "first");
  EXPECT_EQ(RunName("first"), "first");
  EXPECT_EQ(RunName("/"), "/");
  EXPECT_EQ(RunName(""), "");
  EXPECT_EQ(RunName("."), std::filesystem::current_path().filename().string());
}

}  // namespace
}  // namespace thimble
