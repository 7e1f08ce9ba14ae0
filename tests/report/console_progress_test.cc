#include "thimble/report/console_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/train/image_programs.h"
#include "tests/train/tiny_run.h"
#include "thimble/report/text_style.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::Not;

// The output on standard error, which is not a terminal here.
template <class Show>
std::string Shown(Show show) {
  testing::internal::CaptureStderr();
  ConsoleProgress progress;
  show(progress);
  return testing::internal::GetCapturedStderr();
}

TEST(ConsoleProgress, StartsWithModelAndArena) {
  const auto program = MakeTrainingProgram(TinyConfig(), ImageSpec{}, {10, 0, 6}, BuiltinOps());
  const std::string text = Shown([&](auto& progress) { progress.OnStart(*program, "runs/x"); });
  EXPECT_THAT(
      text, testing::StartsWith("wrn-10-1 on shapes:10,6, batch 4, cpu: 77850 parameters, arena "));
  EXPECT_THAT(text, testing::EndsWith(std::to_string(program->program.arena_bytes) +
                                      " bytes), run folder runs/x\n"));
}

TEST(ConsoleProgress, LogsGetNoLinePerStepAndNoControlCodes) {
  const std::string text = Shown([](auto& progress) {
    for (int64_t step = 1; step <= 100; ++step) progress.OnStep({.step = step, .num_steps = 100});
    progress.OnMessage("a message");
  });
  EXPECT_EQ(text, "a message\n");
}

TEST(ConsoleProgress, EpochSaysWhatWasEvaluated) {
  EpochReport report{.epoch = 3, .train_loss = 1.25, .train_accuracy = 0.5, .seconds = 3725};
  std::string text = Shown([&](auto& progress) { progress.OnEpoch(report); });
  EXPECT_EQ(text, "epoch 3: train loss 1.2500, accuracy 50.00 %  (1:02:05)\n");
  report.evaluated = true;
  report.seconds = 59.6;
  report.test = {.accuracy = 0.125, .count = 8};
  text = Shown([&](auto& progress) { progress.OnEpoch(report); });
  EXPECT_EQ(text, "epoch 3: train loss 1.2500, accuracy 50.00 %; test 12.50 %  (1:00)\n");
  report.validation = {.accuracy = 0.25, .count = 8};
  text = Shown([&](auto& progress) { progress.OnEpoch(report); });
  EXPECT_THAT(text, HasSubstr("; validation 25.00 %; test 12.50 %"));
}

// A run with long numbers.
Progress LongProgress() {
  return {.step = 123456,
          .num_steps = 234567,
          .loss = 1.23456,
          .accuracy = 0.987,
          .learning_rate = 0.0123456,
          .examples_per_second = 123456,
          .arena_bytes = 393'798'272};
}

TEST(ProgressBar, ShowsEverythingWhereThereIsRoom) {
  EXPECT_EQ(ProgressBar(LongProgress(), 3725, 200),
            "[############............]  step 123456/234567  loss 1.2346  accuracy 98.7 %  "
            "lr 0.01235  123456 images/s  393.80 MB  1:02:05 left");
}

TEST(ProgressBar, NeverWiderThanAsked) {
  for (size_t width = 1; width <= 200; ++width) {
    const std::string line = ProgressBar(LongProgress(), 3725, width);
    EXPECT_LE(DisplayWidth(line), width);
    EXPECT_GE(line.size(), std::min<size_t>(width, 18)) << line;
  }
}

TEST(ProgressBar, LeavesOutWhatMattersLeast) {
  EXPECT_EQ(ProgressBar(LongProgress(), 3725, 79),
            "step 123456/234567  loss 1.2346  accuracy 98.7 %  123456 images/s  1:02:05 left");
  EXPECT_EQ(ProgressBar({.step = 5, .num_steps = 10, .loss = 2, .examples_per_second = 99}, 7, 79),
            "[######.......]  step 5/10  loss 2.0000  accuracy 0.0 %  99 images/s  0:07 left");
  EXPECT_EQ(ProgressBar(LongProgress(), 3725, 50), "step 123456/234567  loss 1.2346  1:02:05 left");
  EXPECT_EQ(ProgressBar(LongProgress(), 3725, 20), "step 123456/234567");
}

TEST(ProgressBar, OddRuns) {
  EXPECT_THAT(ProgressBar({.step = 0, .num_steps = 0}, 0, 79), HasSubstr("step 0/0"));
  Progress diverged = LongProgress();
  diverged.loss = -std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(ProgressBar(diverged, 1, 200), HasSubstr("loss not finite  "));
}

TEST(ConsoleProgress, NoNumberIsMinusNan) {
  EpochReport report{.epoch = 1, .train_loss = -std::numeric_limits<double>::quiet_NaN()};
  EXPECT_THAT(Shown([&](auto& progress) { progress.OnEpoch(report); }),
              HasSubstr("train loss not finite, accuracy"));
  TrainSummary summary;
  summary.train_loss = std::numeric_limits<double>::infinity();
  EXPECT_THAT(SummaryText(summary), HasSubstr("train loss not finite, "));
}

TEST(SummaryText, HasMemoryAndResult) {
  TrainSummary summary;
  summary.run_folder = "runs/x";
  summary.arena_bytes = 4'000'000;
  summary.measured_peak_bytes = 3'999'999;
  summary.test_accuracy = 0.9;
  summary.finished = true;
  summary.steps = 12;
  summary.train_loss = 0.5;
  const std::string text = SummaryText(summary);
  EXPECT_THAT(text, HasSubstr("4000000  4.00 MB\n"));
  EXPECT_THAT(text, HasSubstr("measured peak  3999999"));
  EXPECT_THAT(text, HasSubstr("test accuracy 90.00 %, train loss 0.5000, 12 steps in 0:00"));
  EXPECT_THAT(text, testing::EndsWith("run folder: runs/x\n"));
}

TEST(SummaryText, OfARunThatWasStopped) {
  TrainSummary summary;
  summary.stop_signal = 2;
  summary.steps = 12;
  summary.num_steps = 40;
  summary.continue_command = "thimble train --out x --resume";
  const std::string text = SummaryText(summary);
  EXPECT_THAT(text, Not(HasSubstr("accuracy")));
  EXPECT_THAT(text, HasSubstr("\n12 steps in 0:00"));
  EXPECT_THAT(text, HasSubstr("stopped by SIGINT at step 12 of 40, before the end; continue with:\n"
                              "  thimble train --out x --resume\n"));
}

TEST(SummaryText, OfARunWithoutSteps) { EXPECT_THAT(SummaryText({}), Not(HasSubstr("nan"))); }

}  // namespace
}  // namespace thimble
