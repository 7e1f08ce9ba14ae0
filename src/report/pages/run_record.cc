#include "thimble/report/pages/run_record.h"

#include <fmt/format.h>

#include <filesystem>

#include "thimble/base/file_reader.h"
#include "thimble/plan/plan_json.h"
#include "thimble/train/metrics.h"
#include "thimble/train/options.h"
#include "thimble/train/run_folder.h"
#include "thimble/train/training_program.h"

namespace thimble {
namespace {

// Each far beyond what a run writes: a hundred times the plans of wrn-28-2, two million lines.
constexpr int64_t kMaxPlanBytes = 32 << 20;
constexpr int64_t kMaxMetricsBytes = 128 << 20;
constexpr int64_t kMaxSummaryBytes = 1 << 20;

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// Our files are flat. A file that is nothing but brackets would take a hundred times its size.
Result<void> CheckNesting(std::string_view text) {
  constexpr int kMostNested = 16;
  int depth = 0;
  bool quoted = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted && c == '\\') {
      ++at;  // whatever is escaped, a quote too
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '[' || c == '{')) {
      if (++depth > kMostNested) {
        return BadInput(
            fmt::format("byte {}: expected at most {} nested brackets", at, kMostNested));
      }
    } else if (!quoted && (c == ']' || c == '}')) {
      --depth;
    }
  }
  return {};
}

Result<ProgramRecord> ParsePlans(std::string_view text) {
  THIMBLE_TRY(CheckNesting(text));
  return ProgramRecordFromJson(text);
}

Result<TrainSummary> ParseSummary(std::string_view text) {
  THIMBLE_TRY(CheckNesting(text));
  return SummaryFromJson(text);
}

// What `parse` makes of a file; its errors get the file's name.
template <class Parse>
auto ReadFile(const std::string& path, int64_t max_bytes, const Parse& parse)
    -> decltype(parse(std::string())) {
  THIMBLE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, max_bytes));
  auto value = parse(text);
  if (!value.ok()) return WithContext(path, value.error());
  return value;
}

}  // namespace

Result<RunRecord> ReadRunFolder(const std::string& folder) {
  RunRecord run;
  run.folder = folder;
  const std::string config_path = folder + "/config.toml";
  if (!Exists(config_path)) {
    return BadInput(fmt::format("{}: is no run folder: there is no config.toml in it", folder));
  }
  THIMBLE_TRY(ReadConfigFile(config_path, run.config));
  THIMBLE_ASSIGN_OR_RETURN(run.program, ReadFile(folder + "/plan.json", kMaxPlanBytes, ParsePlans));
  if (const std::string path = folder + "/metrics.jsonl"; Exists(path)) {
    THIMBLE_ASSIGN_OR_RETURN(run.metrics, ReadFile(path, kMaxMetricsBytes, MetricsFromLines));
  }
  if (const std::string path = folder + "/summary.json"; Exists(path)) {
    THIMBLE_ASSIGN_OR_RETURN(run.summary, ReadFile(path, kMaxSummaryBytes, ParseSummary));
  }
  return run;
}

std::optional<Savings> FindRunSavings(const RunRecord& run, const OpRegistry& ops) {
  TrainConfig config;
  if (!ReadRunConfig(run.folder, config).ok()) return std::nullopt;
  const auto data = DescribeData(config);
  if (!data.ok()) return std::nullopt;
  const auto planned = MakeTrainingProgram(config, data->images, data->counts, ops);
  if (!planned.ok() || planned->program.arena_bytes != run.program.arena_bytes) return std::nullopt;
  auto savings = FindSavings(config, planned->model, ops);
  if (!savings.ok()) return std::nullopt;
  return std::move(savings).value();
}

}  // namespace thimble
