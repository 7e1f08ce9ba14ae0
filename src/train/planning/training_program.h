// TrainingProgram: the graphs and plans that a run needs, made from its configuration and the shape
// of its data before anything is allocated.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/plan/program.h"
#include "thimble/plan/program_record.h"
#include "thimble/program/make_graphs.h"
#include "thimble/tensor/batch_shape.h"
#include "thimble/train/options/config.h"
#include "thimble/train/planning/decoding.h"
#include "thimble/train/task/task.h"

namespace thimble {

// The configuration with a batch of at most all training data, and with microbatch and bn_group of
// at most the batch.
TrainConfig CutToData(TrainConfig config, const Task& task);
// A message for the user if CutToData changes the batch; empty otherwise.
std::string CutMessage(const TrainConfig& config, const Task& task);

struct TrainingProgram {
  TaskPtr task;
  std::string data;  // config.data
  Program program;
  std::vector<InitRule> inits;
  UpdateSpec update = {};  // as techniques changed it
  int64_t batch = 0;       // size of a full batch: samples, or tokens
  int64_t part = 0;        // size of the largest part: as much as is in the arena at a time
  BatchCuts cuts = {};     // the parts of batches of each shape, the full one's included
  BatchShape full = {};    // of a full batch
  std::optional<TechniqueRecord> split_by = {};  // the technique that split batches, if any

  // Whether a step is one run for each part of its batch and one for the update.
  bool in_parts() const { return InParts(cuts); }
  // The parts in which a batch is trained; one part if it was not planned.
  NearlyEqualParts PartsOf(const BatchShape& shape) const;
  // Runs per step with a full batch.
  int64_t runs_per_step() const;
  // The most runs that a step has.
  int64_t most_runs_per_step() const;

  // Index of the plan for a batch of this shape. Requires that one was planned.
  size_t TrainPlan(const BatchShape& shape) const;
  size_t EvaluatePlan(const BatchShape& shape) const;
  // If in_parts(): the plan of a part of such a batch, and of the update after the last part.
  size_t PartPlan(const BatchShape& of_part, const BatchShape& of_batch) const;
  size_t UpdatePlan(const BatchShape& of_batch) const;
  // The plan that rewires sparse weights, if there is one.
  std::optional<size_t> RewirePlan() const;
  // Training with a full batch, or the first part of it.
  const Plan& main_plan() const { return program.plans.front(); }

  // The plans that translate, if there are sentences to translate.
  std::optional<DecodingPlans> decoding = {};
  // Indices of plans by shape.
  std::map<BatchShape, size_t> train_plans = {};
  std::map<BatchShape, size_t> evaluate_plans = {};
  std::map<std::pair<BatchShape, BatchShape>, size_t> part_plans = {};  // by part and batch
  std::map<BatchShape, size_t> update_plans = {};
};

// The record of the program. If batches are split, the first plan also has a record of that
// technique, with the bytes it saves if `plain_arena_bytes` is not 0 (unknown).
ProgramRecord RecordOf(const TrainingProgram& program, const OpRegistry& ops,
                       int64_t plain_arena_bytes);

// Plans training and evaluation for all shapes of the task's batches.
// `enough_bytes`: see PlanOptions.
Result<TrainingProgram> MakeTrainingProgram(const TrainConfig& config, const TaskPtr& task,
                                            const OpRegistry& ops, size_t enough_bytes = 0);

// The techniques that the configuration requests.
TechniqueRequest RequestOf(const TrainConfig& config);

// The same training without techniques that a user has to request, and without a budget.
TrainConfig PlainConfig(TrainConfig config);
// Whether no such technique was requested, and none is left out.
bool IsPlain(const TrainConfig& config);

// The arena of PlainConfig(config).
Result<int64_t> PlainArenaBytes(const TrainConfig& config, const TaskPtr& task,
                                const OpRegistry& ops);
// The same, for a configuration whose program is known: it may be plain itself.
Result<int64_t> PlainArenaBytes(const TrainConfig& config, const TrainingProgram& planned,
                                const OpRegistry& ops);

// Evaluation of a part of the data only: parameters and statistics without gradients, optimizer
// state or ring.
Result<TrainingProgram> MakeEvaluationProgram(const TrainConfig& config, const TaskPtr& task,
                                              DataPart part, const OpRegistry& ops);

// Translation only. config.budget_bytes, if not 0, decides how many sentences there are at a time.
Result<TrainingProgram> MakeTranslationProgram(const TrainConfig& config,
                                               const TranslatorSpec& translator, int64_t longest,
                                               const OpRegistry& ops);

// kDoesNotFit, with the excess, the largest values at the peak and `advice` (budget_advice.h), if
// the arena is larger than the budget and that is above 0.
Result<void> CheckBudget(const Program& program, int64_t budget_bytes,
                         const std::string& advice = "");

// Name of the prefetch ring's buffer for a field, among the residents.
std::string RingName(int64_t slot, const std::string& field);

}  // namespace thimble
