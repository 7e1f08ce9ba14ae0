// RunRecord: a run folder as a plain value. Reports are made from it and from nothing else.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/plan/program_record.h"
#include "thimble/report/pages/metrics_log.h"
#include "thimble/train/options/config.h"
#include "thimble/train/planning/frontier.h"
#include "thimble/train/planning/savings.h"
#include "thimble/train/run_folder/train_summary.h"

namespace thimble {

struct RunRecord {
  std::string folder;  // as given by the user
  TrainConfig config;
  ProgramRecord program;
  MetricsLog metrics;                   // empty if nothing was written yet
  std::optional<TrainSummary> summary;  // none until the run ends
  std::optional<Savings> savings;       // see FindRunSavings
  std::vector<FrontierPoint> frontier;  // see FindRunFrontier

  // The plan that trains a full batch, or its first part.
  const PlanRecord& plan() const { return program.plans.front(); }
};

// Reads config.toml, plan.json, metrics.jsonl and summary.json. The last two may be missing. Errors
// are kBadInput and name the file, the place and what was expected.
Result<RunRecord> ReadRunFolder(const std::string& folder);

// What techniques save for the run's network, found by planning it again. None if its model or data
// are no longer available, or if this version plans it differently.
std::optional<Savings> FindRunSavings(const RunRecord& run, const OpRegistry& ops);
// What other budgets would choose for it. Takes seconds. Empty if there are no savings either.
std::vector<FrontierPoint> FindRunFrontier(const RunRecord& run, const OpRegistry& ops);

}  // namespace thimble
