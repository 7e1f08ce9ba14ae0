// BudgetAdvice: options that would make a plan fit the budget. Each was planned, so that following
// the advice gives the stated arena.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/train/options/config.h"
#include "thimble/train/planning/plan_sizer.h"
#include "thimble/train/planning/training_program.h"

namespace thimble {

// Options to add to the given ones; they replace the same options.
struct Advice {
  std::string options;  // "--batch 60"; "--microbatch 1 --recompute optimal"
  int64_t arena_bytes = 0;
  std::string exactness;  // if the options change results; empty otherwise
};

struct BudgetAdvice {
  // Each entry fits. If no single option fits: all options together, if these fit.
  std::vector<Advice> fitting;
  // If nothing fits: the options with the smallest arena found.
  std::optional<Advice> smallest;
  int64_t largest_batch = 0;  // for training: LargestBatchWithin
};
std::string ToString(const BudgetAdvice& advice);

// Advice for training with an arena larger than config.budget_bytes: a smaller --batch, or another
// value of each lever. Makes about twenty plans.
Result<BudgetAdvice> AdviseTraining(const TrainConfig& config, const PlanSizer& sizer);

// Advice for evaluating a part of the data: a smaller --batch, fewer --threads, and the levers that
// are not training_only.
Result<BudgetAdvice> AdviseEvaluation(const TrainConfig& config, const TaskPtr& task, DataPart part,
                                      const OpRegistry& ops);

// The largest batch up to config.batch whose arena, planned as configured and for the same data, is
// within the budget; 0 if there is none, or if batches are of tokens. Batches below --microbatch or
// --bn-group do not count: they would be rejected. Assumes that arenas grow with the samples of the
// largest part of a batch (true except for a few bytes of placement): batches whose largest part is
// larger than one that did not fit are not planned.
Result<int64_t> LargestBatchWithin(const TrainConfig& config, const PlanSizer& sizer);

// CheckBudget with advice in the error.
Result<void> CheckTrainingBudget(const TrainConfig& config, const TrainingProgram& planned,
                                 const OpRegistry& ops);
Result<void> CheckEvaluationBudget(const TrainConfig& config, const TrainingProgram& planned,
                                   DataPart part, const OpRegistry& ops);

}  // namespace thimble
