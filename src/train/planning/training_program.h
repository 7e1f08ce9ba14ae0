// TrainingProgram: the graphs and plans that a run needs, made from its configuration and the shape
// of its data before anything is allocated.
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

// The data that a plan is made for. The number of images determines the sizes of last batches.
struct PlannedData {
  ImageSpec images;
  ImageCounts counts;
};
// Describes config.data without reading its files (DescribeImageData). If no data was given and
// config.model is a model file: the images that the file describes, in full batches only.
Result<PlannedData> DescribeData(const TrainConfig& config);

// The configuration with a batch of at most all training images, and with microbatch and bn_group
// of at most the batch. Unchanged if the number of images is unknown (0).
TrainConfig CutToData(TrainConfig config, const ImageCounts& counts);
// A message for the user if CutToData changes the batch; empty otherwise.
std::string CutMessage(const TrainConfig& config, const ImageCounts& counts);

// The augmentation of the configuration, or the data set's usual one if that is "auto".
Augmentation ChosenAugmentation(const TrainConfig& config, Augmentation usual);

struct TrainingProgram {
  ImageClassifier model;
  std::string data;                                 // config.data
  Augmentation augmentation = Augmentation::kNone;  // of training images
  Program program;
  std::vector<InitRule> inits;
  UpdateSpec update = {};  // as techniques changed it
  int64_t batch = 0;       // samples of a full batch
  int64_t part = 0;        // samples of the largest part: as many as are in the arena at a time
  BatchCuts cuts = {};     // the parts of each batch size
  std::optional<TechniqueRecord> split_by = {};  // the technique that split batches, if any

  // Whether a step is one run for each part of its batch and one for the update.
  bool in_parts() const { return PartsOf(batch).parts > 1; }
  // The parts in which a batch of this many samples is trained; one part if it was not planned.
  NearlyEqualParts PartsOf(int64_t batch_samples) const;
  // Runs per step with a full batch.
  int64_t runs_per_step() const;

  // Index of the plan for a batch of this many samples. Requires that one was planned.
  size_t TrainPlan(int64_t samples) const;
  size_t EvaluatePlan(int64_t samples) const;
  // If in_parts(): the plan of a part of such a batch, and of the update after the last part.
  size_t PartPlan(const BatchShare& share) const;
  size_t UpdatePlan(int64_t batch_samples) const;
  // The plan that rewires sparse weights, if there is one.
  std::optional<size_t> RewirePlan() const;
  // Training with a full batch, or the first part of it.
  const Plan& main_plan() const { return program.plans.front(); }
};

// The record of the program. If batches are split, the first plan also has a record of that
// technique, with the bytes it saves if `plain_arena_bytes` is not 0 (unknown).
ProgramRecord RecordOf(const TrainingProgram& program, const OpRegistry& ops,
                       int64_t plain_arena_bytes);

// Plans training and evaluation for full and last batches; for full batches only if counts.train is
// 0.
Result<TrainingProgram> MakeTrainingProgram(const TrainConfig& config, const ImageSpec& images,
                                            const ImageCounts& counts, const OpRegistry& ops);

// The same with this network in place of config.model.
Result<TrainingProgram> MakeTrainingProgram(const TrainConfig& config, const ImageClassifier& model,
                                            const ImageCounts& counts, const OpRegistry& ops);

// The techniques that the configuration requests.
TechniqueRequest RequestOf(const TrainConfig& config);

// The same training without techniques that a user has to request, and without a budget.
TrainConfig PlainConfig(TrainConfig config);
// Whether no such technique was requested, and none is left out.
bool IsPlain(const TrainConfig& config);

// The arena of PlainConfig(config).
Result<int64_t> PlainArenaBytes(const TrainConfig& config, const ImageSpec& images,
                                const ImageCounts& counts, const OpRegistry& ops);
// The same, for a configuration whose program is known: it may be plain itself.
Result<int64_t> PlainArenaBytes(const TrainConfig& config, const TrainingProgram& planned,
                                const ImageCounts& counts, const OpRegistry& ops);

// Evaluation only: parameters and statistics without gradients, optimizer state or ring.
Result<TrainingProgram> MakeEvaluationProgram(const TrainConfig& config, const ImageSpec& images,
                                              int64_t num_images, const OpRegistry& ops);

// kDoesNotFit, with the excess, the largest values at the peak and `advice` (budget_advice.h), if
// the arena is larger than the budget and that is above 0.
Result<void> CheckBudget(const Program& program, int64_t budget_bytes,
                         const std::string& advice = "");

// Names of the prefetch ring's buffers among the residents.
std::string RingImagesName(int64_t slot);
std::string RingLabelsName(int64_t slot);

}  // namespace thimble
