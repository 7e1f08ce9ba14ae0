// ProgramRecord: the plans of a run with names instead of ids: what runs when, and what is stored
// where. It is the contents of plan.json. Every table, plot and trace is made from it, whether the
// plans were just made or read from a run folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/graph/op_def.h"
#include "thimble/plan/cost.h"
#include "thimble/plan/memory/accounting.h"
#include "thimble/plan/program.h"
#include "thimble/plan/technique_record.h"

namespace thimble {

struct StepRecord {
  std::string op;
  std::string kernel;
  std::string layer;
  std::string phase;
  int64_t flops = 0;
  int64_t moved_bytes = 0;  // inputs read once, outputs written once
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  friend bool operator==(const StepRecord&, const StepRecord&) = default;
};

struct PlanRecord {
  std::string name;           // "train 100"
  std::string device;         // "cpu", "cuda"
  int64_t runs_per_step = 1;  // in a training step with a full batch
  int64_t parameters = 0;
  size_t arena_bytes = 0;
  size_t lower_bound_bytes = 0;
  int64_t forward_flops = 0;  // of one run, like the others
  int64_t step_flops = 0;
  int64_t recompute_flops = 0;
  std::vector<TechniqueRecord> techniques;  // those of the graph, then those of the planner
  std::vector<StepRecord> steps;
  std::vector<Holding> holdings;
  friend bool operator==(const PlanRecord&, const PlanRecord&) = default;
};

struct ProgramRecord {
  size_t arena_bytes = 0;
  std::vector<PlanRecord> plans;  // the first one trains a full batch, or its first part
  friend bool operator==(const ProgramRecord&, const ProgramRecord&) = default;
};

PlanRecord RecordOf(const Plan& plan, const std::string& name, const OpRegistry& ops);
ProgramRecord RecordOf(const Program& program, const OpRegistry& ops);

// Arithmetic of a training step with a full batch: all runs of its plans.
GraphCost StepCost(const ProgramRecord& record);
GraphCost StepCost(const Program& program, const OpRegistry& ops);

inline MemoryAccount Account(const PlanRecord& record) {
  return Account(record.holdings, record.steps.size(), record.arena_bytes);
}

}  // namespace thimble
