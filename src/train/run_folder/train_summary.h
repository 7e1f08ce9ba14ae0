// The results of a run: of each epoch (a line of metrics.jsonl) and of the whole run
// (summary.json).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "thimble/device/device.h"

namespace thimble {

// Means over images, or over the tokens of translations (Task::unit).
struct Evaluation {
  double loss = 0;
  double accuracy = 0;  // share of correct answers, 0..1
  int64_t count = 0;    // images or tokens
  // Of translations found by beam search, 0..100; see TranslationScore::bleu.
  std::optional<double> bleu = {};
};

struct StepReport {
  int64_t step = 0;  // from 1
  double loss = 0;
  double learning_rate = 0;
  std::optional<double> loss_scale = {};  // if the loss is scaled or gradients are checked
  int64_t skipped_updates = 0;            // so far
};

// What one rewiring of sparse weights did.
struct RewiringReport {
  int64_t moved = 0;
  double threshold = 0;         // from now on
  std::vector<int64_t> active;  // weights of each sparse tensor
};

struct EpochReport {
  int64_t epoch = 0;  // from 1; --steps may end the last one early
  double train_loss = 0;
  double train_accuracy = 0;
  bool evaluated = false;
  int64_t averaged_epochs = 0;  // evaluated is the average of the weights of so many; 0: no average
  Evaluation validation = {};   // count = 0 if there is no validation set
  Evaluation test = {};
  double seconds = 0;  // of the whole run so far
};

struct TrainSummary {
  std::string run_folder;
  bool finished = false;  // false: stopped by a signal, can be resumed
  int stop_signal = 0;    // the signal that stopped it
  int64_t steps = 0;      // steps done
  int64_t num_steps = 0;  // steps of the whole run
  // Unknown (null in JSON) if the run was stopped before its first epoch ended or was evaluated.
  std::optional<double> train_loss;  // of the last epoch
  std::optional<double> train_accuracy;
  std::optional<double> test_loss;
  std::optional<double> test_accuracy;
  std::optional<double> bleu;           // of translations of the test set
  std::optional<double> best_accuracy;  // on the validation set, or the test set if there is none
  int64_t best_epoch = 0;
  std::optional<double> loss_scale;  // at the end, if the loss is scaled or gradients are checked
  int64_t skipped_updates = 0;       // because a gradient was not finite
  double seconds = 0;
  std::string unit = "images";  // what is counted: images, or tokens
  double examples_per_second = 0;
  int64_t parameters = 0;
  int64_t plain_arena_bytes = 0;  // the same training without optional techniques
  int64_t arena_bytes = 0;
  int64_t lower_bound_bytes = 0;
  int64_t planned_peak_bytes = 0;
  int64_t measured_peak_bytes = 0;
  int64_t arena_resident_bytes = 0;  // whole pages, from the operating system
  int64_t process_peak_bytes = 0;
  int64_t heap_calls_in_steps = 0;  // including those of a device's driver
  int64_t map_calls_in_steps = 0;
  std::string device;
  std::string device_name;
  std::string math;
  DeviceMemory device_memory;
  int64_t device_allocations = 0;
  int64_t device_allocations_in_steps = 0;
  std::string simd;
  int threads = 0;
  int64_t metrics_bytes = 0;  // size of metrics.jsonl
  uint64_t metrics_checksum = 0;
  std::string command;           // repeats the run
  std::string continue_command;  // continues the run
  std::string version;
  std::string json;  // as in summary.json
};

}  // namespace thimble
