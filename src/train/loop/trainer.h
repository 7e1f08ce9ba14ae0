// The training loop: data in, updates, evaluation, files of the run folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "thimble/base/result.h"
#include "thimble/graph/op_def.h"
#include "thimble/model/image_classifier.h"
#include "thimble/train/options/config.h"
#include "thimble/train/planning/training_program.h"
#include "thimble/train/run_folder/train_summary.h"

namespace thimble {

// The progress of a run, for a progress bar.
struct Progress {
  int64_t step = 0;  // updates done
  int64_t num_steps = 0;
  int64_t steps_per_epoch = 1;
  double loss = 0;      // mean of the epoch so far
  double accuracy = 0;  // on the training data of the epoch so far
  double learning_rate = 0;
  double examples_per_second = 0;
  std::string_view unit = "images";  // what is counted (Task::unit)
  size_t arena_bytes = 0;
  double loss_scale = 0;  // 0: the loss is not scaled
};

// Receives the events of a run.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void OnStart(const TrainingProgram& /*program*/, const std::string& /*run_folder*/) {}
  virtual void OnStep(const Progress& /*progress*/) {}
  // Called after the epoch's line was written to metrics.jsonl.
  virtual void OnEpoch(const EpochReport& /*report*/) {}
  virtual void OnMessage(const std::string& /*line*/) {}
  // Called when the files of the run are complete and its peaks were read.
  virtual void OnFinish(const TrainSummary& /*summary*/) {}
};

// Trains as configured. kFailed if planned and measured memory differ, or if memory was allocated
// during a step: the run folder is complete, and the error describes the difference.
Result<TrainSummary> Train(const TrainConfig& config, const OpRegistry& ops,
                           TrainObserver& observer);

// The same for a given network, which classifies the images of config.data. Its name replaces
// config.model in the files of the run.
Result<TrainSummary> Train(const TrainConfig& config, const ModelFactory& model,
                           const OpRegistry& ops, TrainObserver& observer);

}  // namespace thimble
