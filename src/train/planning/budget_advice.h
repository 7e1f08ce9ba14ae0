// BudgetAdvice: what would make a plan fit that does not. Every piece of advice was planned, so it
// holds when it is followed.
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

// Options to add to those that were given, or to take the place of the same ones.
struct Advice {
  std::string options;  // "--batch 60"; "--microbatch 1 --recompute optimal"
  int64_t arena_bytes = 0;
  std::string exactness;  // of a technique that changes results; empty otherwise
};

struct BudgetAdvice {
  // Each one fits. Where no single option does, all options together, if these fit.
  std::vector<Advice> fitting;
  // Where nothing fits: the options with the smallest arena that was found.
  std::optional<Advice> smallest;
  int64_t largest_batch = 0;  // of training, see LargestBatchWithin
};
std::string ToString(const BudgetAdvice& advice);

// For a training whose arena is larger than config.budget_bytes: a smaller --batch, or another
// value of each lever. Plans some twenty times.
Result<BudgetAdvice> AdviseTraining(const TrainConfig& config, const PlanSizer& sizer);

// For an evaluation of so many images: a smaller --batch, fewer --threads, and the levers
// that are not of training alone.
Result<BudgetAdvice> AdviseEvaluation(const TrainConfig& config, const ImageSpec& images,
                                      int64_t num_images, const OpRegistry& ops);

// The largest batch up to config.batch whose arena, planned as configured and for the same data, is
// within the budget; 0 where none is. Batches below --microbatch or --bn-group do not count: they
// would be refused. Arenas grow with the samples of the largest part of a batch, but for a few
// bytes of placement: between the answer and config.batch, batches whose largest part is larger
// than one that did not fit are not planned.
Result<int64_t> LargestBatchWithin(const TrainConfig& config, const PlanSizer& sizer);

// CheckBudget with advice.
Result<void> CheckTrainingBudget(const TrainConfig& config, const TrainingProgram& planned,
                                 const ImageCounts& counts, const OpRegistry& ops);
Result<void> CheckEvaluationBudget(const TrainConfig& config, const TrainingProgram& planned,
                                   const ImageSpec& images, int64_t num_images,
                                   const OpRegistry& ops);

}  // namespace thimble
