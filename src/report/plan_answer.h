// PlanAnswer: what `thimble plan` has to say, and how it says it to programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "thimble/plan/program_record.h"
#include "thimble/train/planning/budget_advice.h"
#include "thimble/train/planning/savings.h"

namespace thimble {

struct PlanAnswer {
  std::string model;
  int64_t batch = 0;
  int64_t budget_bytes = 0;       // 0: none
  int64_t plain_arena_bytes = 0;  // the same work without any technique; 0: not known
  bool plain = true;              // no technique was asked for
  ProgramRecord record;
  std::optional<Savings> savings = {};
  std::vector<SmallestArena> smallest = {};  // by optimal recompute
  BudgetAdvice advice = {};                  // where the budget does not suffice
  bool with_layers = false;                  // a row per layer

  // Training with a full batch, or with the first part of it.
  const PlanRecord& plan() const { return record.plans.front(); }
  int64_t arena_bytes() const { return static_cast<int64_t>(record.arena_bytes); }
  bool fits() const { return budget_bytes <= 0 || arena_bytes() <= budget_bytes; }
};

// The most that each category has at any step; not all at the same one.
CategoryBytes LargestOf(const MemoryAccount& account);

// One object: totals, categories at the peak and techniques of the first plan, arithmetic of a
// step.
std::string ToJson(const PlanAnswer& answer);

// A line per category or, with layers, per layer; the first line names the columns. Bytes and
// operations as plain numbers.
std::string ToCsv(const PlanAnswer& answer);

}  // namespace thimble
