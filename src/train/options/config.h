// TrainConfig: everything a user can say about a run. The command line and TOML files fill it
// through one table of options (options.h); the run folder keeps the resolved one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "thimble/device/device_kind.h"
#include "thimble/grad/training_graph.h"

namespace thimble {

struct TrainConfig {
  // What
  std::string model = "wrn-28-2";
  std::string data = "shapes";
  bool data_given = false;  // by option or file: a plan is then for this data (DescribeData)
  int64_t batch = 100;
  int64_t microbatch = 0;        // samples of a part of the batch at most; 0: the whole batch
  int64_t validation = 0;        // images held out of the training set
  std::string augment = "auto";  // auto: as the data set's usual recipe; none; crop-flip
  // How
  double learning_rate = 0.1;
  std::string schedule = "constant";
  int64_t warmup_steps = 0;
  OptimizerSpec optimizer{.momentum = 0.9, .nesterov = false, .weight_decay = 5e-4};
  int64_t epochs = 1;
  int64_t steps = 0;  // 0: as many as the epochs have
  uint64_t seed = 1;
  std::string init = {};        // weights to start from, instead of random ones
  std::string conv = "direct";  // or winograd: fewer multiplications, other roundings
  int64_t bn_group = 0;         // samples that share batch-norm statistics; 0: the whole batch
  // Memory
  std::string recompute = "none";      // which forward values are dropped (recompute_spec.h)
  int64_t scratch_bytes = 1 << 20;     // per thread
  int64_t budget_bytes = 0;            // 0: no limit
  std::set<std::string> without = {};  // techniques left out, to measure them
  // Values of levers (program/lever.h) that have no member above, by name.
  std::map<std::string, std::string> levers = {};
  // Where
  std::string device = "cpu";  // or cuda
  std::string math = "auto";   // of products: tf32 (cuda) or fp32
  int64_t threads = 0;         // 0: as many as the machine has cores
  std::string simd = "auto";
  std::string out = {};
  bool resume = false;
  bool extend = false;           // the resumed run may become longer
  bool overwrite = false;        // the run that is in `out` may go
  int64_t checkpoint_every = 0;  // steps; 0: at the end of each epoch
  int64_t eval_every = 1;        // epochs; 0: only at the end
  int64_t report_every = 0;      // epochs; 0: only at the end
  int64_t log_every = 50;        // steps per line in metrics.jsonl
  int64_t prefetch = 2;          // slots of the prefetch ring
};

// The number of threads the run uses: config.threads, or the machine's.
int ResolvedThreads(const TrainConfig& config);
// What --device says. Requires a configuration that CheckConfig accepts.
DeviceKind DeviceOf(const TrainConfig& config);
// "fp32" or "tf32".
std::string ResolvedMath(const TrainConfig& config);

}  // namespace thimble
