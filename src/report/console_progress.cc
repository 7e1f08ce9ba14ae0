#include "thimble/report/console_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "thimble/base/byte_size.h"
#include "thimble/report/text_table.h"
#include "thimble/train/stop_signal.h"

namespace thimble {
namespace {

using Clock = std::chrono::steady_clock;

// Often enough to look alive, rarely enough to cost nothing; logs get a line now and then.
constexpr auto kBarInterval = std::chrono::milliseconds(200);
constexpr auto kLineInterval = std::chrono::seconds(10);
constexpr int kBarWidth = 24;

std::string Duration(double seconds) {
  const int64_t total = std::llround(seconds);
  if (total >= 3600)
    return fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
  return fmt::format("{}:{:02}", total / 60, total % 60);
}

std::string Bar(const Progress& progress) {
  const auto filled = static_cast<size_t>(kBarWidth * progress.step / progress.num_steps);
  return std::string(filled, '#') + std::string(kBarWidth - filled, '.');
}

std::string Status(const Progress& progress, double seconds_left) {
  return fmt::format(
      "step {}/{}  loss {:.4f}  accuracy {:.1f} %  lr {:.4g}  {:.0f} images/s  {}  {} left",
      progress.step, progress.num_steps, progress.loss, 100 * progress.accuracy,
      progress.learning_rate, progress.images_per_second,
      FormatBytes(static_cast<int64_t>(progress.arena_bytes)), Duration(seconds_left));
}

// What is known: a run that was stopped early may have been evaluated by then, or not.
std::string Outcome(const TrainSummary& summary) {
  std::string text;
  if (summary.test_accuracy)
    text += fmt::format("test accuracy {:.2f} %, ", 100 * *summary.test_accuracy);
  if (summary.train_loss) text += fmt::format("train loss {:.4f}, ", *summary.train_loss);
  return text;
}

std::string HowToContinue(const TrainSummary& summary) {
  if (summary.finished) return {};
  return fmt::format("stopped by {} at step {} of {}, before the end; continue with:\n  {}\n",
                     SignalName(summary.stop_signal), summary.steps, summary.num_steps,
                     summary.continue_command);
}

}  // namespace

ConsoleProgress::ConsoleProgress()
    : terminal_(isatty(STDERR_FILENO) == 1), last_shown_(Clock::now()), started_(last_shown_) {}

void ConsoleProgress::Line(const std::string& line) {
  // Return and "erase to the end of the line" remove the bar.
  fmt::print(stderr, "{}{}\n", terminal_ ? "\r\033[K" : "", line);
}

void ConsoleProgress::OnStart(const TrainingProgram& program, const std::string& run_folder) {
  started_ = Clock::now();
  Line(fmt::format("{} on {}: {} parameters, arena {} ({} bytes), run folder {}",
                   program.model.name, Name(program.main_plan().device),
                   CountParameters(program.main_plan().graph),
                   FormatBytes(static_cast<int64_t>(program.program.arena_bytes)),
                   program.program.arena_bytes, run_folder));
}

void ConsoleProgress::OnStep(const Progress& progress) {
  if (first_step_ < 0) first_step_ = progress.step - 1;
  const auto now = Clock::now();
  if (now - last_shown_ < (terminal_ ? Clock::duration(kBarInterval) : kLineInterval)) return;
  last_shown_ = now;
  const double elapsed = std::chrono::duration<double>(now - started_).count();
  const double seconds_left = elapsed * static_cast<double>(progress.num_steps - progress.step) /
                              static_cast<double>(progress.step - first_step_);
  const std::string status = Status(progress, seconds_left);
  if (terminal_) {
    fmt::print(stderr, "\r\033[K[{}] {}", Bar(progress), status);
    std::fflush(stderr);
  } else {
    Line(status);
  }
}

void ConsoleProgress::OnEpoch(const EpochReport& report) {
  std::string line = fmt::format("epoch {}: train loss {:.4f}, accuracy {:.2f} %", report.epoch,
                                 report.train_loss, 100 * report.train_accuracy);
  if (report.validation.images > 0) {
    line += fmt::format("; validation {:.2f} %", 100 * report.validation.accuracy);
  }
  if (report.evaluated) line += fmt::format("; test {:.2f} %", 100 * report.test.accuracy);
  Line(line + fmt::format("  ({})", Duration(report.seconds)));
}

void ConsoleProgress::OnMessage(const std::string& line) { Line(line); }

std::string SummaryText(const TrainSummary& summary) {
  TextTable table({"memory", "bytes", ""});
  const auto row = [&](const std::string& name, int64_t bytes) {
    table.AddRow({name, fmt::format("{}", bytes), FormatBytes(bytes)});
  };
  row("plain plan", summary.plain_arena_bytes);
  row("arena", summary.arena_bytes);
  row("planned peak", summary.planned_peak_bytes);
  row("measured peak", summary.measured_peak_bytes);
  row("process", summary.process_peak_bytes);
  if (summary.device_memory.driver_bytes > 0) {
    row("GPU, by its driver", summary.device_memory.driver_bytes);
    row("of that its context", summary.device_memory.context_bytes);
  }
  return fmt::format("\n{}\n{}{} steps in {}, {:.1f} images/s\n{}run folder: {}\n",
                     table.ToString(), Outcome(summary), summary.steps, Duration(summary.seconds),
                     summary.images_per_second, HowToContinue(summary), summary.run_folder);
}

}  // namespace thimble
