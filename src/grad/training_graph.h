// From a network's forward graph to the graph of one whole update: backward and optimizer.
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

// Names that builder, optimizer and trainer agree on.
inline constexpr const char* kLearningRateInput = "learning_rate";  // f32 [1]
inline constexpr const char* kMomentumPrefix = "momentum.";         // + name of the parameter

// Appends the backward pass from the scalar `loss` and one update per parameter.
Result<void> AppendUpdate(Graph& graph, const OpRegistry& ops, ValueId loss,
                          const OptimizerSpec& optimizer);

}  // namespace thimble
