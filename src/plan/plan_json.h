// Programs as JSON: the run folder's plan.json and the answer of `thimble plan --json`.
#pragma once

#include <cstdint>
#include <string>

#include "thimble/graph/op_def.h"
#include "thimble/plan/program.h"

namespace thimble {

// Everything: every step, buffer and resident of every plan.
std::string ProgramJson(const Program& program, const OpRegistry& ops);

struct PlanSummaryInput {
  std::string model;
  int64_t batch = 0;
  int64_t budget_bytes = 0;       // 0: none
  int64_t plain_arena_bytes = 0;  // the same work without any technique
};
// Totals, categories at the peak, techniques and arithmetic of the program's first plan (training).
std::string PlanSummaryJson(const Program& program, const OpRegistry& ops,
                            const PlanSummaryInput& input);

}  // namespace thimble
