#include "thimble/report/console_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/tiny_run.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::Not;

// What is printed on standard error, which is no terminal here.
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
  EXPECT_THAT(text, testing::StartsWith("wrn-10-1 on cpu: 77850 parameters, arena "));
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
  report.test = {.accuracy = 0.125, .images = 8};
  text = Shown([&](auto& progress) { progress.OnEpoch(report); });
  EXPECT_EQ(text, "epoch 3: train loss 1.2500, accuracy 50.00 %; test 12.50 %  (1:00)\n");
  report.validation = {.accuracy = 0.25, .images = 8};
  text = Shown([&](auto& progress) { progress.OnEpoch(report); });
  EXPECT_THAT(text, HasSubstr("; validation 25.00 %; test 12.50 %"));
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
