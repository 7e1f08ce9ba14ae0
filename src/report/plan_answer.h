// PlanAnswer: the result of `thimble plan`, and its form as JSON and CSV.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "thimble/plan/program_record.h"
#include "thimble/train/planning/budget_advice.h"
#include "thimble/train/planning/budget_search.h"
#include "thimble/train/planning/savings.h"

namespace thimble {

struct PlanAnswer {
  std::string model;
  int64_t batch = 0;
  int64_t budget_bytes = 0;       // 0: none
  int64_t plain_arena_bytes = 0;  // without optional techniques; 0: unknown
  bool plain = true;              // no optional technique was requested
  ProgramRecord record;
  double step_seconds = 0;  // as predicted; 0: unknown
  std::optional<Savings> savings = {};
  std::vector<SmallestArena> smallest = {};  // by optimal recompute
  std::optional<BudgetChoice> choice = {};   // what the budget chose, if anything
  BudgetAdvice advice = {};                  // if the budget is too small
  bool with_layers = false;                  // add a row per layer

  // The plan that trains a full batch, or its first part.
  const PlanRecord& plan() const { return record.plans.front(); }
  int64_t arena_bytes() const { return static_cast<int64_t>(record.arena_bytes); }
  bool fits() const { return budget_bytes <= 0 || arena_bytes() <= budget_bytes; }
};

// The largest number of bytes of each category at any step, not all at the same step.
CategoryBytes LargestOf(const MemoryAccount& account);

// One object: totals, categories at the peak and techniques of the first plan, arithmetic of a
// step.
std::string ToJson(const PlanAnswer& answer);

// A header, then a line per category or, with `with_layers`, per layer. Bytes and operations are
// plain numbers.
std::string ToCsv(const PlanAnswer& answer);

}  // namespace thimble
