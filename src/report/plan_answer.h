// PlanAnswer: what `thimble plan` has to say, and how it says it to programs.
#pragma once

#include <cstdint>
#include <string>

#include "thimble/plan/program_record.h"

namespace thimble {

struct PlanAnswer {
  std::string model;
  int64_t batch = 0;
  int64_t budget_bytes = 0;       // 0: none
  int64_t plain_arena_bytes = 0;  // the same work without any technique
  ProgramRecord record;

  const PlanRecord& plan() const { return record.plans.front(); }  // training, full batch
  bool fits() const {
    return budget_bytes <= 0 || static_cast<int64_t>(record.arena_bytes) <= budget_bytes;
  }
};

// One object: totals, categories at the peak, techniques and arithmetic of the first plan.
std::string ToJson(const PlanAnswer& answer);

}  // namespace thimble
