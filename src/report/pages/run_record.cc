#include "thimble/report/pages/run_record.h"

#include <fmt/format.h>

#include <filesystem>

#include "thimble/base/crc64.h"
#include "thimble/base/sealed_text.h"
#include "thimble/plan/plan_json.h"
#include "thimble/train/options/options.h"
#include "thimble/train/planning/training_program.h"
#include "thimble/train/run_folder/metrics.h"
#include "thimble/train/run_folder/run_folder.h"
#include "thimble/train/step_time/op_times_file.h"
#include "thimble/train/task/find_task.h"

namespace thimble {
namespace {

// Far more than a run writes: a hundred times the plans of wrn-28-2, two million lines.
constexpr int64_t kMaxPlanBytes = 32 << 20;
constexpr int64_t kMaxMetricsBytes = 128 << 20;

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// Checks the lines that the run had written when it ended. A continued run adds more lines; a
// summary of an older version has no checksum.
Result<void> CheckLines(std::string_view text, const TrainSummary& summary) {
  const auto size = static_cast<size_t>(summary.metrics_bytes);
  Crc64 checksum;
  checksum.Append(text.substr(0, size));
  if (text.size() >= size && checksum.value() == summary.metrics_checksum) return {};
  return BadInput(
      fmt::format("is damaged or was edited: its first {} bytes are not what the run wrote", size));
}

// Parses a file; errors get its path as context.
template <class Parse>
auto ReadFile(const std::string& path, int64_t max_bytes, const Parse& parse)
    -> decltype(parse(std::string())) {
  THIMBLE_ASSIGN_OR_RETURN(const std::string text, ReadSealedFile(path, max_bytes));
  auto value = parse(text);
  if (!value.ok()) return WithContext(path, value.error());
  return value;
}

struct PlannedRun {
  TaskPtr task;
  TrainConfig plain;
};

// The run's network; none if its model or data are no longer available, or if this version plans it
// differently.
std::optional<PlannedRun> PlanAgain(const RunRecord& run, const OpRegistry& ops) {
  TrainConfig config;
  if (!ReadRunConfig(run.folder, config).ok()) return std::nullopt;
  const auto task = DescribeTask(config);
  if (!task.ok()) return std::nullopt;
  const auto planned = MakeTrainingProgram(config, *task, ops);
  if (!planned.ok() || planned->program.arena_bytes != run.program.arena_bytes) return std::nullopt;
  return PlannedRun{*task, PlainConfig(CutToData(config, **task))};
}

}  // namespace

Result<RunRecord> ReadRunFolder(const std::string& folder) {
  RunRecord run;
  run.folder = folder;
  const std::string config_path = folder + "/config.toml";
  if (!Exists(config_path)) {
    return BadInput(fmt::format("{}: is not a run folder: it contains no config.toml", folder));
  }
  // The run's copy of a model file is not read here.
  THIMBLE_ASSIGN_OR_RETURN(const std::string config, ReadSealedFile(config_path, kMaxConfigBytes));
  THIMBLE_TRY(ReadConfigFile(config_path, run.config));
  THIMBLE_ASSIGN_OR_RETURN(run.program,
                           ReadFile(folder + "/plan.json", kMaxPlanBytes, ProgramRecordFromJson));
  if (const std::string path = folder + "/summary.json"; Exists(path)) {
    THIMBLE_ASSIGN_OR_RETURN(run.summary, ReadFile(path, kMaxSummaryBytes, SummaryFromJson));
  }
  if (const std::string path = folder + "/metrics.jsonl"; Exists(path)) {
    const auto parse = [&](std::string_view text) -> Result<MetricsLog> {
      if (run.summary) THIMBLE_TRY(CheckLines(text, *run.summary));
      return MetricsFromLines(text);
    };
    THIMBLE_ASSIGN_OR_RETURN(run.metrics, ReadFile(path, kMaxMetricsBytes, parse));
  }
  return run;
}

std::optional<Savings> FindRunSavings(const RunRecord& run, const OpRegistry& ops) {
  const std::optional<PlannedRun> planned = PlanAgain(run, ops);
  if (!planned) return std::nullopt;
  // Techniques are applied to the plain plan; the run's own arena is shown next to them.
  auto savings = FindSavings(planned->plain, PlanSizer(planned->task, ops));
  if (!savings.ok()) return std::nullopt;
  return std::move(savings).value();
}

std::vector<FrontierPoint> FindRunFrontier(const RunRecord& run, const OpRegistry& ops) {
  const std::optional<PlannedRun> planned = PlanAgain(run, ops);
  if (!planned) return {};
  constexpr double kFraction = 0.5;  // few budgets: each takes a second
  const PlanSizer sizer(planned->task, ops, LoadOpTimes(run.config));
  auto frontier = FindFrontier(planned->plain, sizer, kFraction);
  if (!frontier.ok()) return {};
  return std::move(frontier).value();
}

}  // namespace thimble
