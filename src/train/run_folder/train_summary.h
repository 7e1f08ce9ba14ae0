// What a run has to say: at the end of each epoch (a line of metrics.jsonl) and at its end
// (summary.json).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "thimble/device/device.h"

namespace thimble {

struct Evaluation {
  double loss = 0;      // mean over the images
  double accuracy = 0;  // share of right answers, 0..1
  int64_t images = 0;
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

}  // namespace thimble
