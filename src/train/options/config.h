// TrainConfig: all settings of a run. The command line and TOML files fill it through one table of
// options (options.h); the run folder contains the resolved configuration.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "thimble/device/device_kind.h"
#include "thimble/grad/update_spec.h"

namespace thimble {

struct TrainConfig {
  // What
  std::string model = "wrn-28-2";
  std::string data = "shapes";
  bool data_given = false;  // `data` was set by option or file (see DescribeData)
  int64_t batch = 100;
  int64_t microbatch = 0;        // maximum samples per part of the batch; 0: the whole batch
  int64_t validation = 0;        // images held out of the training set
  std::string augment = "auto";  // auto: the usual one for the data set; none; crop-flip
  // How
  double learning_rate = 0.1;
  std::string schedule = "constant";
  int64_t warmup_steps = 0;
  OptimizerSpec optimizer{.momentum = 0.9, .nesterov = false, .weight_decay = 5e-4};
  double clip = 0;                  // largest norm of all gradients; 0: no limit
  std::string loss_scale = "auto";  // auto, none, or the scale to begin with
  int64_t loss_scale_interval = 2000;
  double loss_scale_factor = 2;
  double loss_scale_floor = 1e-4;
  int64_t epochs = 1;
  int64_t steps = 0;  // 0: as many as `epochs` gives
  uint64_t seed = 1;
  std::string init = {};        // file of initial weights; empty: random weights
  std::string conv = "direct";  // or winograd: fewer multiplications, different rounding
  int64_t bn_group = 0;         // samples that share batch-norm statistics; 0: the whole batch
  // Memory
  std::string recompute = "none";      // which forward values are dropped (recompute_spec.h)
  int64_t scratch_bytes = 1 << 20;     // per thread
  int64_t budget_bytes = 0;            // 0: no limit
  std::string allow = "lossy";         // what the budget may change (allowed.h)
  std::set<std::string> without = {};  // techniques to leave out
  // Values, by name, of levers (program/lever.h) that have no member above.
  std::map<std::string, std::string> levers = {};
  // Where
  std::string device = "cpu";  // or cuda
  std::string math = "auto";   // precision of products: tf32 (cuda) or fp32
  int64_t threads = 0;         // 0: one per core
  std::string simd = "auto";
  std::string out = {};
  bool resume = false;
  bool extend = false;           // allow the resumed run to become longer
  bool overwrite = false;        // delete the run in `out`
  int64_t checkpoint_every = 0;  // steps; 0: at the end of each epoch
  int64_t eval_every = 1;        // epochs; 0: only at the end
  int64_t beam = 4;              // hypotheses of a translation; 0: nothing is translated
  double length_penalty = 1;     // as in SearchOptions
  int64_t bleu_every = 0;        // epochs; 0: only at the end
  int64_t average = 0;           // last epochs whose weights are averaged; 0: none
  int64_t report_every = 0;      // epochs; 0: only at the end
  int64_t log_every = 50;        // steps per line in metrics.jsonl
  int64_t prefetch = 2;          // slots of the prefetch ring
};

// A GPU gets the scratch memory of this many threads. A constant, so that plans do not depend on
// the cores of the host.
inline constexpr size_t kThreadsOfAGpu = 16;

// The number of threads the run uses: config.threads, or the number of cores.
int ResolvedThreads(const TrainConfig& config);
// The value of --device. Requires a configuration that CheckConfig accepts.
DeviceKind DeviceOf(const TrainConfig& config);
// "fp32" or "tf32".
std::string ResolvedMath(const TrainConfig& config);

}  // namespace thimble
