// RunRecord: a run folder as a plain value. Reports are made from it and from nothing else.
#pragma once

#include <optional>
#include <string>

#include "thimble/base/result.h"
#include "thimble/plan/program_record.h"
#include "thimble/report/pages/metrics_log.h"
#include "thimble/train/options/config.h"
#include "thimble/train/planning/savings.h"
#include "thimble/train/run_folder/train_summary.h"

namespace thimble {

struct RunRecord {
  std::string folder;  // as it was named
  TrainConfig config;
  ProgramRecord program;
  MetricsLog metrics;                   // empty where nothing was written yet
  std::optional<TrainSummary> summary;  // none as long as the run goes on
  std::optional<Savings> savings;       // see FindRunSavings

  // Training with a full batch, or with the first part of it.
  const PlanRecord& plan() const { return program.plans.front(); }
};

// Reads config.toml, plan.json, metrics.jsonl and summary.json. The last two may be missing. Errors
// are kBadInput and name the file, the place and what was expected.
Result<RunRecord> ReadRunFolder(const std::string& folder);

// What techniques save for the run's network, by planning it again; none where its model or data
// cannot be had any more, or are planned differently by now.
std::optional<Savings> FindRunSavings(const RunRecord& run, const OpRegistry& ops);

}  // namespace thimble
