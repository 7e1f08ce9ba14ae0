// The training loop: data in, updates, evaluation, files of the run folder.
#pragma once

#include <cstdint>
#include <string>

#include "thimble/base/result.h"
#include "thimble/graph/op_def.h"
#include "thimble/train/options/config.h"
#include "thimble/train/planning/training_program.h"
#include "thimble/train/run_folder/train_summary.h"

namespace thimble {

// Where a run stands; enough for a progress bar.
struct Progress {
  int64_t step = 0;  // updates done
  int64_t num_steps = 0;
  int64_t steps_per_epoch = 1;
  double loss = 0;      // mean of the epoch so far
  double accuracy = 0;  // on the training images of the epoch so far
  double learning_rate = 0;
  double images_per_second = 0;
  size_t arena_bytes = 0;
};

// What a run tells while it goes on.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void OnStart(const TrainingProgram& /*program*/, const std::string& /*run_folder*/) {}
  virtual void OnStep(const Progress& /*progress*/) {}
  // Its line is in metrics.jsonl.
  virtual void OnEpoch(const EpochReport& /*report*/) {}
  virtual void OnMessage(const std::string& /*line*/) {}
  // The files of the run are complete and its peaks were read.
  virtual void OnFinish(const TrainSummary& /*summary*/) {}
};

// Trains as configured. On success planned and measured memory agree and nothing was allocated
// during a step; where they do not, the run folder is complete and the error says what differed.
Result<TrainSummary> Train(const TrainConfig& config, const OpRegistry& ops,
                           TrainObserver& observer);

// The same with a network of one's own. Its name takes the place of config.model in the run's
// files.
Result<TrainSummary> Train(const TrainConfig& config, const ModelFactory& model,
                           const OpRegistry& ops, TrainObserver& observer);

}  // namespace thimble
