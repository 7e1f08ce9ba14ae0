// Turns a network's forward graph into the graph of one whole update: backward and optimizer. For
// batches trained in parts, makes the graph of a part and that of the update after the last part:
//
//   part:    forward, backward;  sum.w → accumulate(sum.w, dw, seen) …  for each parameter
//   update:  w, momentum.w → sgd_update(w, sum.w, momentum.w, learning_rate) …
#pragma once

#include "thimble/base/result.h"
#include "thimble/graph/graph.h"
#include "thimble/graph/op_def.h"

namespace thimble {

// Stochastic gradient descent: d = g + weight_decay * w; m = momentum * m + d;
// w -= lr * (nesterov ? d + momentum * m : m). With momentum 0 there is no momentum array.
struct OptimizerSpec {
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0;
};

// The share of a batch that a part has.
struct BatchShare {
  int64_t samples = 0;  // samples of the part
  int64_t batch = 0;    // samples of the whole batch
};

// Names shared by builder, optimizer and trainer.
inline constexpr const char* kLearningRateInput = "learning_rate";  // f32 [1]
inline constexpr const char* kSeenInput = "seen";            // i32 [1], samples in earlier parts
inline constexpr const char* kMomentumPrefix = "momentum.";  // + name of the parameter
inline constexpr const char* kSumPrefix = "sum.";            // + name of the parameter or statistic

// Appends the backward pass from the scalar `loss` and one update per parameter.
Result<void> AppendUpdate(Graph& graph, const OpRegistry& ops, ValueId loss,
                          const OptimizerSpec& optimizer);

// Turns the forward graph of a part into the whole graph of that part. `loss` is the mean over the
// part; gradients are weighted by its share of the batch and added up in accumulators, and so are
// the statistics that the forward graph would update. A run with seen = 0 restarts the sums.
Result<void> AppendSums(Graph& graph, const OpRegistry& ops, ValueId loss, const BatchShare& share);

// Makes the update from the sums over all parts; `forward` is the forward graph of a part with this
// share.
Result<Graph> MakeUpdateGraph(const Graph& forward, const OpRegistry& ops,
                              const OptimizerSpec& optimizer, const BatchShare& share);

}  // namespace thimble
