#include "thimble/report/pages/run_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "thimble/base/byte_size.h"
#include "thimble/report/plots/plot_frame.h"
#include "thimble/report/units.h"
#include "thimble/train/options/usual_settings.h"

namespace thimble {
namespace {

std::string MemoryText(const TrainSummary& summary) {
  std::string text = fmt::format("Trained in an arena of {}", FormatBytes(summary.arena_bytes));
  if (summary.plain_arena_bytes > summary.arena_bytes) {
    text += fmt::format(", 1/{:.2f} of the plain plan's {}",
                        static_cast<double>(summary.plain_arena_bytes) /
                            static_cast<double>(std::max<int64_t>(summary.arena_bytes, 1)),
                        FormatBytes(summary.plain_arena_bytes));
  } else {
    text += ", the plain plan";
  }
  if (summary.planned_peak_bytes == summary.measured_peak_bytes) {
    return text + "; planned and measured peak agree to the byte.";
  }
  return text + fmt::format("; planned and measured peak differ: {} and {} bytes.",
                            CountText(summary.planned_peak_bytes),
                            CountText(summary.measured_peak_bytes));
}

std::string OutcomeText(const TrainSummary& summary) {
  if (!summary.test_accuracy) return "Not evaluated yet";
  const std::string accuracy = Percent(*summary.test_accuracy);
  if (!summary.bleu) return "Test accuracy " + accuracy;
  return fmt::format("BLEU {:.2f}, test accuracy {}", *summary.bleu, accuracy);
}

}  // namespace

std::string RunName(const std::string& folder) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(folder, error).lexically_normal();
  if (error) return folder;
  if (!path.has_filename()) path = path.parent_path();  // "runs/first/"
  return path.has_filename() ? path.filename().string() : path.string();
}

std::string BatchText(const TrainConfig& config) {
  if (IsTranslation(config)) {
    std::string batch = fmt::format("batch {} tokens", config.batch);
    if (config.microbatch == 0) return batch;
    return fmt::format("{} in parts of at most {}", batch, config.microbatch);
  }
  const NearlyEqualParts parts = CutBatch(BatchShape{config.batch}, RequestOf(config));
  if (parts.parts == 1) return fmt::format("batch {}", config.batch);
  return fmt::format("batch {} in parts of {}{}", config.batch,
                     parts.total % parts.parts == 0 ? "" : "at most ", parts.LargestSize());
}

std::string WhatRuns(const RunRecord& run) {
  return fmt::format("{} on {}, {}, {}", run.config.model, run.config.data, BatchText(run.config),
                     run.plan().device);
}

std::string ResultText(const RunRecord& run) {
  if (!run.summary) {
    return fmt::format(
        "This run has no summary yet: it is still running, or was killed. Planned arena {}; {} "
        "steps in its metrics so far.",
        FormatBytes(static_cast<int64_t>(run.program.arena_bytes)), CountText(StepsDone(run)));
  }
  const TrainSummary& summary = *run.summary;
  std::string text = MemoryText(summary);
  text += fmt::format(" {} after {} steps, {}.", OutcomeText(summary), CountText(summary.steps),
                      RateText(summary));
  if (StepsDone(run) > summary.steps) {
    text += fmt::format(" The run continued after that: its metrics reach step {}.",
                        CountText(StepsDone(run)));
  } else if (!summary.finished) {
    text += " It was stopped early.";
  }
  return text;
}

int64_t StepsDone(const RunRecord& run) {
  int64_t steps = run.summary ? run.summary->steps : 0;
  for (const auto* points : {&run.metrics.loss, &run.metrics.train_loss}) {
    if (!points->empty()) steps = std::max(steps, static_cast<int64_t>(points->back().step));
  }
  return steps;
}

std::optional<double> TestAccuracy(const RunRecord& run) {
  if (!run.metrics.test_accuracy.empty()) return run.metrics.test_accuracy.back().value;
  return run.summary ? run.summary->test_accuracy : std::nullopt;
}

std::string PlainRatio(const TrainSummary& summary) {
  if (summary.arena_bytes <= 0) return "–";
  return fmt::format("{:.2f}x", static_cast<double>(summary.plain_arena_bytes) /
                                    static_cast<double>(summary.arena_bytes));
}

std::string RateText(const TrainSummary& summary) {
  const double rate = std::min(summary.examples_per_second, 1e15);
  if (rate < 1000) return fmt::format("{:.1f} {}/s", rate, summary.unit);
  return fmt::format("{} {}/s", CountText(std::llround(rate)), summary.unit);
}

std::string Percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

std::string DurationText(double seconds) {
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const int64_t whole = std::llround(std::min(seconds, 1e15));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

}  // namespace thimble
