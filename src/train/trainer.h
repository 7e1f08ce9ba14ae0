// The training loop: data in, updates, evaluation, files of the run folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "thimble/base/result.h"
#include "thimble/device/device.h"
#include "thimble/graph/op_def.h"
#include "thimble/train/config.h"
#include "thimble/train/evaluate.h"
#include "thimble/train/training_program.h"

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

struct EpochReport {
  int64_t epoch = 0;  // from 1; --steps may end the last one early
  double train_loss = 0;
  double train_accuracy = 0;
  bool evaluated = false;
  Evaluation validation = {};  // images = 0 where there is no validation set
  Evaluation test = {};
  double seconds = 0;  // of the whole run so far
};

struct TrainSummary {
  std::string run_folder;
  bool finished = false;  // false: stopped by a signal, to be resumed
  int stop_signal = 0;    // that stopped it
  int64_t steps = 0;      // done
  int64_t num_steps = 0;  // of the whole run
  // Unknown (null in JSON) where a run was stopped before its first epoch ended or was evaluated.
  std::optional<double> train_loss;  // of the last epoch
  std::optional<double> train_accuracy;
  std::optional<double> test_loss;
  std::optional<double> test_accuracy;
  std::optional<double> best_accuracy;  // on the validation set, or the test set if there is none
  int64_t best_epoch = 0;
  double seconds = 0;
  double images_per_second = 0;
  int64_t parameters = 0;
  int64_t plain_arena_bytes = 0;  // the same work without any technique
  int64_t arena_bytes = 0;
  int64_t lower_bound_bytes = 0;
  int64_t planned_peak_bytes = 0;
  int64_t measured_peak_bytes = 0;
  int64_t arena_resident_bytes = 0;  // whole pages, from the operating system
  int64_t process_peak_bytes = 0;
  int64_t heap_calls_in_steps = 0;  // with those of a device's driver
  int64_t map_calls_in_steps = 0;
  std::string device;
  std::string device_name;
  std::string math;
  DeviceMemory device_memory;
  int64_t device_allocations = 0;
  int64_t device_allocations_in_steps = 0;
  std::string simd;
  int threads = 0;
  int64_t metrics_bytes = 0;  // what metrics.jsonl holds
  uint64_t metrics_checksum = 0;
  std::string command;           // that repeats the run
  std::string continue_command;  // that goes on with it
  std::string version;
  std::string json;  // as in summary.json
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
