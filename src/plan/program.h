// Program: all plans of a run (each batch shape, training and evaluation) inside one arena.
//
// Plans of a group run one after the other and hand caches (Role::kCache) to each other. These are
// placed above the residents, in plans of the group only: to all others, and to other groups, the
// same bytes are free. So they are lost when a plan outside the group runs.
//
//   | weights, optimizer | caches of group A | plans of A                       |
//   | weights, optimizer | caches of B | plans of B              |
//   | weights, optimizer | training                                            |
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
  std::string group = {};                        // whose caches it uses; empty: it has none
};

struct Program {
  std::vector<std::string> names;  // by plan
  std::vector<Plan> plans;
  // By plan: how often it runs in a training step with a full batch; 0 for evaluation and smaller
  // batches.
  std::vector<int64_t> runs_per_step;
  std::vector<std::string> groups;  // by plan, see NamedGraph
  ResidentLayout residents;         // of all plans; those of a group also have its caches
  size_t arena_bytes = 0;           // of the largest plan

  const Plan* Find(std::string_view name) const;
};

// Places the persistent values of all graphs (equal names are one resident) and the extra residents
// (their offsets are ignored), plans every graph above them, and sizes the arena for the largest
// plan.
Result<Program> PlanProgram(const std::vector<NamedGraph>& graphs, const OpRegistry& ops,
                            const std::vector<Resident>& extra, const PlanOptions& options);

// Places the persistent values of all graphs and the extra residents.
Result<ResidentLayout> LayOutResidents(const std::vector<NamedGraph>& graphs,
                                       const std::vector<Resident>& extra = {});

// Plans more graphs for a program, whose residents must include their persistent values, and adds
// them.
Result<void> AddToProgram(Program& program, const std::vector<NamedGraph>& graphs,
                          const OpRegistry& ops, const PlanOptions& options);

// Adds the plans of another program, which must have the same residents.
void Append(Program& program, Program more);

}  // namespace thimble
