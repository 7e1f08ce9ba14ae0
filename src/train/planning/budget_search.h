// ChooseForBudget: finds the values of levers with which training fits a budget.
//
// Preferred are the same bits, then values that are equal up to rounding, then lossy ones by the
// accuracy that they are expected to cost; among the rest, the fastest step as predicted or, where
// the machine was not measured, the least arithmetic. The steps of all allowed levers form one line
// in that order, and each step makes the arena smaller: a binary search finds the shortest
// beginning of the line that fits. Then levers that turn out not to be needed go back to milder
// values, and what is left of the budget is spent on less recomputing, more threads and more
// scratch.
//
// What changes results does not depend on the number of threads: it is chosen for one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/train/options/config.h"
#include "thimble/train/planning/plan_sizer.h"

namespace thimble {

struct ChosenLever {
  std::string option;        // "--microbatch 10"
  std::string exactness;     // "lossy: batch-norm statistics per 10 samples"
  double lost_points = 0;    // of accuracy, as expected (LeverStep)
  int64_t freed_bytes = 0;   // of the smallest arena that the other levers allow
  double added_seconds = 0;  // per step, as predicted; 0 if unknown
};

// The class in a text like "lossy: batch-norm statistics per 10 samples".
Exactness ClassIn(std::string_view exactness);

struct BudgetChoice {
  TrainConfig config = {};
  int64_t arena_bytes = 0;
  std::vector<ChosenLever> levers = {};  // empty: nothing had to be chosen
  int64_t threads = 0;                   // if the budget allows fewer than requested; 0 otherwise
  double step_seconds = 0;               // as predicted; 0: unknown
  // The smallest arena without changing results further, and the option that smaller ones need
  // first; empty if there is none.
  int64_t smallest_bytes = 0;
  std::string beyond = {};

  std::string options() const;  // "--microbatch 10 --precision fp16"
  double lost_points() const;
  Exactness exactness() const;  // of the least exact lever
};
// One line for people; empty if nothing was chosen.
std::string ToString(const BudgetChoice& choice);

// Levers that are not at their plain value keep their values. If the configuration fits, has no
// budget or allows nothing, it is returned as it is. kDoesNotFit, with the smallest arena found, if
// nothing fits.
Result<BudgetChoice> ChooseForBudget(const TrainConfig& config, const PlanSizer& sizer);
// The same; if nothing fits, the error also has what a wider --allow would choose.
Result<BudgetChoice> ChooseOrAdvise(const TrainConfig& config, const PlanSizer& sizer);

struct BudgetedProgram {
  TrainingProgram program = {};
  BudgetChoice choice = {};
};

// The program of a run: chosen for the budget or, with --allow none, as configured. kDoesNotFit,
// with advice, if it is larger than the budget.
Result<BudgetedProgram> PlanWithinBudget(const TrainConfig& config, const TaskPtr& task,
                                         const OpRegistry& ops);

}  // namespace thimble
