// TrainingProgram: the graphs and plans that a run needs, from its configuration and the shape of
// its data. Everything is known here before anything is allocated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/data/image_dataset.h"
#include "thimble/model/image_classifier.h"
#include "thimble/plan/program.h"
#include "thimble/plan/program_record.h"
#include "thimble/program/make_graphs.h"
#include "thimble/train/options/config.h"

namespace thimble {

// The images of an opened data set, as a network sees them.
ImageSpec SpecOf(const ImageData& data);

// The data that a plan is for. The number of images decides the shapes of last batches.
struct PlannedData {
  ImageSpec images;
  ImageCounts counts;
};
// config.data, whose files are not needed (DescribeImageData); or, where none was given, any images
// that fit the model file of config.model, in full batches.
Result<PlannedData> DescribeData(const TrainConfig& config);

// The configuration as it runs on this data: a batch has at most all training images, and what is
// said about parts of it goes no further. Unchanged where the number of images is not known.
TrainConfig CutToData(TrainConfig config, const ImageCounts& counts);
// Says so where it changes the batch; empty otherwise.
std::string CutMessage(const TrainConfig& config, const ImageCounts& counts);

// The augmentation that the configuration asks for, or the data set's usual one.
Augmentation ChosenAugmentation(const TrainConfig& config, Augmentation usual);

struct TrainingProgram {
  ImageClassifier model;
  std::string data;                                 // as the configuration names it
  Augmentation augmentation = Augmentation::kNone;  // of training
  Program program;
  std::vector<InitRule> inits;
  int64_t batch = 0;    // samples of a full one
  int64_t part = 0;     // samples of the largest part: as many as are in the arena at a time
  BatchCuts cuts = {};  // in what parts each size of batch is trained
  std::optional<TechniqueRecord> cut = {};  // where there are parts: who made them

  // Whether a step is one run for each part of its batch and one for the update.
  bool in_parts() const { return PartsOf(batch).parts > 1; }
  // In what parts a batch of this many samples is trained. One that was not planned is whole.
  NearlyEqualParts PartsOf(int64_t batch_samples) const;
  // Runs of a step with a full batch.
  int64_t runs_per_step() const;

  // Index of the plan for a batch of this many samples. Requires that one was planned.
  size_t TrainPlan(int64_t samples) const;
  size_t EvaluatePlan(int64_t samples) const;
  // Where a step has parts: the plans for a part of such a batch, and for the update behind it.
  size_t PartPlan(const BatchShare& share) const;
  size_t UpdatePlan(int64_t batch_samples) const;
  // Training with a full batch, or the first part of it.
  const Plan& main_plan() const { return program.plans.front(); }
};

// The record of the program, with what was done before its plans were made: the first plan says
// what microbatching saves, where `plain_arena_bytes` is known and not 0.
ProgramRecord RecordOf(const TrainingProgram& program, const OpRegistry& ops,
                       int64_t plain_arena_bytes);

// Plans training and evaluation for full and last batches. With an empty training set in `counts`,
// for full batches only.
Result<TrainingProgram> MakeTrainingProgram(const TrainConfig& config, const ImageSpec& images,
                                            const ImageCounts& counts, const OpRegistry& ops);

// The same with this network in place of config.model.
Result<TrainingProgram> MakeTrainingProgram(const TrainConfig& config, const ImageClassifier& model,
                                            const ImageCounts& counts, const OpRegistry& ops);

// What the configuration asks of the techniques of the program.
TechniqueRequest RequestOf(const TrainConfig& config);

// The same work without any technique that a user has to ask for, and without a budget.
TrainConfig PlainConfig(TrainConfig config);
// Whether no such technique was asked for.
bool IsPlain(const TrainConfig& config);

// The arena of the same work as a plain plan.
Result<int64_t> PlainArenaBytes(const TrainConfig& config, const ImageSpec& images,
                                const ImageCounts& counts, const OpRegistry& ops);
Result<int64_t> PlainArenaBytes(const TrainConfig& config, const ImageClassifier& model,
                                const ImageCounts& counts, const OpRegistry& ops);

// Evaluation only: parameters and statistics without gradients, optimizer state or ring.
Result<TrainingProgram> MakeEvaluationProgram(const TrainConfig& config, const ImageSpec& images,
                                              int64_t num_images, const OpRegistry& ops);

// kDoesNotFit with the shortfall, the largest values at the peak and the advice, if the arena is
// larger than a budget above 0. (budget_advice.h finds advice.)
Result<void> CheckBudget(const Program& program, int64_t budget_bytes,
                         const std::string& advice = "");

// The prefetch ring's parts among the residents.
std::string RingImagesName(int64_t slot);
std::string RingLabelsName(int64_t slot);

}  // namespace thimble
