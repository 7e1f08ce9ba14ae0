#include "thimble/report/console_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "thimble/base/byte_size.h"
#include "thimble/base/standard_streams.h"
#include "thimble/report/text_style.h"
#include "thimble/report/text_table.h"
#include "thimble/train/loop/stop_signal.h"

namespace thimble {
namespace {

using Clock = std::chrono::steady_clock;

// Often enough to look alive, rarely enough to cost nothing; log files get fewer lines.
constexpr auto kBarInterval = std::chrono::milliseconds(200);
constexpr auto kLineInterval = std::chrono::seconds(10);
// For a terminal that does not report its width.
constexpr size_t kTerminalWidth = 80;

std::string Duration(double seconds) {
  const int64_t total = std::llround(seconds);
  if (total >= 3600)
    return fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
  return fmt::format("{}:{:02}", total / 60, total % 60);
}

// Losses of a diverged run are infinite or NaN; which one does not matter.
std::string LossText(double loss) {
  return std::isfinite(loss) ? fmt::format("{:.4f}", loss) : "not finite";
}

std::string Bar(const Progress& progress, size_t width) {
  const double share = static_cast<double>(progress.step) /
                       static_cast<double>(std::max<int64_t>(progress.num_steps, 1));
  const auto filled = static_cast<size_t>(static_cast<double>(width) * std::clamp(share, 0.0, 1.0));
  return "[" + std::string(filled, '#') + std::string(width - filled, '.') + "]";
}

// A part of a status line. Parts of the highest rank are left out first.
struct Part {
  std::string text;
  int rank = 0;
};

std::vector<Part> Parts(const Progress& progress, double seconds_left) {
  std::vector<Part> parts = {
      {fmt::format("step {}/{}", progress.step, progress.num_steps), 0},
      {fmt::format("loss {}", LossText(progress.loss)), 1},
      {fmt::format("accuracy {:.1f} %", 100 * progress.accuracy), 3},
      {fmt::format("lr {:.4g}", progress.learning_rate), 7},
      {fmt::format("{:.0f} {}/s", progress.examples_per_second, progress.unit), 4},
      {FormatBytes(static_cast<int64_t>(progress.arena_bytes)), 6},
      {fmt::format("{} left", Duration(seconds_left)), 2}};
  if (progress.loss_scale > 0) {
    parts.insert(parts.begin() + 4, {fmt::format("scale {:.4g}", progress.loss_scale), 8});
  }
  return parts;
}

std::string Joined(const std::vector<Part>& parts) {
  std::string line;
  for (const Part& part : parts) line += (line.empty() ? "" : "  ") + part.text;
  return line;
}

// Accuracy and loss, if known: a run that was stopped early may not have been evaluated.
std::string Outcome(const TrainSummary& summary) {
  std::string text;
  if (summary.test_accuracy)
    text += fmt::format("test accuracy {:.2f} %, ", 100 * *summary.test_accuracy);
  if (summary.bleu) text += fmt::format("BLEU {:.2f}, ", *summary.bleu);
  if (summary.train_loss) text += fmt::format("train loss {}, ", LossText(*summary.train_loss));
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
  // A carriage return and "erase to the end of the line" remove the bar.
  WriteMessage(fmt::format("{}{}\n", terminal_ ? "\r\033[K" : "", line));
}

void ConsoleProgress::OnStart(const TrainingProgram& program, const std::string& run_folder) {
  started_ = Clock::now();
  Line(fmt::format("{} on {}, batch {}, {}: {} parameters, arena {} ({} bytes), run folder {}",
                   program.task->model(), program.data, program.batch,
                   Name(program.main_plan().device), CountParameters(program.main_plan().graph),
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
  if (terminal_) {
    const size_t width = TerminalWidth(STDERR_FILENO);
    // Some terminals wrap as soon as the last column is used.
    WriteMessage("\r\033[K" +
                 ProgressBar(progress, seconds_left, (width == 0 ? kTerminalWidth : width) - 1));
  } else {
    Line(Joined(Parts(progress, seconds_left)));
  }
}

void ConsoleProgress::OnEpoch(const EpochReport& report) {
  std::string line = fmt::format("epoch {}: train loss {}, accuracy {:.2f} %", report.epoch,
                                 LossText(report.train_loss), 100 * report.train_accuracy);
  if (report.validation.count > 0) {
    line += fmt::format("; validation {:.2f} %", 100 * report.validation.accuracy);
  }
  if (report.averaged_epochs > 0) {
    line += fmt::format("; average of {} epochs", report.averaged_epochs);
  }
  if (report.evaluated) line += fmt::format("; test {:.2f} %", 100 * report.test.accuracy);
  if (report.test.bleu) line += fmt::format(", BLEU {:.2f}", *report.test.bleu);
  Line(line + fmt::format("  ({})", Duration(report.seconds)));
}

void ConsoleProgress::OnMessage(const std::string& line) { Line(line); }

std::string ProgressBar(const Progress& progress, double seconds_left, size_t width) {
  constexpr size_t kWidest = 26;
  constexpr size_t kNarrowest = 12;  // with its brackets
  constexpr int kBarRank = 5;
  std::vector<Part> parts = Parts(progress, seconds_left);
  parts.insert(parts.begin(), {std::string(kNarrowest, ' '), kBarRank});
  const auto rank = [](const Part& part) { return part.rank; };
  while (parts.size() > 1 && Joined(parts).size() > width) {
    parts.erase(std::ranges::max_element(parts, {}, rank));
  }
  const size_t used = Joined(parts).size();
  if (parts.front().rank == kBarRank) {
    const size_t room = std::min(kNarrowest + width - used, kWidest);
    parts.front().text = Bar(progress, room - 2);
  }
  return Shortened(Joined(parts), std::max<size_t>(width, 1));
}

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
    row("GPU (from driver)", summary.device_memory.driver_bytes);
    row("of which context", summary.device_memory.context_bytes);
  }
  return fmt::format("\n{}\n{}{} steps in {}, {:.1f} {}/s\n{}run folder: {}\n", table.ToString(),
                     Outcome(summary), summary.steps, Duration(summary.seconds),
                     summary.examples_per_second, summary.unit, HowToContinue(summary),
                     summary.run_folder);
}

}  // namespace thimble
