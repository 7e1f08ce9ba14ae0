// Program: all plans of a run (each batch shape, training and evaluation) inside one arena.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/plan/draft.h"
#include "thimble/plan/plan.h"
#include "thimble/plan/technique_record.h"

namespace thimble {

struct NamedGraph {
  std::string name;  // "train 100", "evaluate 64"
  Graph graph = {};
  int64_t runs_per_step = 0;                     // see Program
  std::vector<TechniqueRecord> techniques = {};  // applied to the graph
};

struct Program {
  std::vector<std::string> names;  // by plan
  std::vector<Plan> plans;
  // By plan: how often it runs in a training step with a full batch; 0 for evaluation and smaller
  // batches.
  std::vector<int64_t> runs_per_step;
  ResidentLayout residents;
  size_t arena_bytes = 0;  // of the largest plan

  const Plan* Find(std::string_view name) const;
};

// Places the persistent values of all graphs (equal names are one resident) and the extra residents
// (their offsets are ignored), plans every graph above them, and sizes the arena for the largest
// plan.
Result<Program> PlanProgram(const std::vector<NamedGraph>& graphs, const OpRegistry& ops,
                            const std::vector<Resident>& extra, const PlanOptions& options);

}  // namespace thimble
