// Reverse-mode differentiation, graph to graph: appends the backward nodes that the ops' gradient
// rules emit. There is no hidden tape; everything the backward pass reads is an edge of the graph.
#pragma once

#include <utility>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/graph/graph.h"
#include "thimble/graph/op_def.h"

namespace thimble {

struct GradientSeed {
  ValueId of;        // a value of the graph
  ValueId gradient;  // its given gradient, of the same shape
};

// Appends nodes that compute the gradient of each value in `wrt`, given the gradients in `seeds`.
// Returns one value per entry of `wrt`, named "d" + its name. Fails if a value in `wrt` does not
// influence any seed, or a path goes through an op without a gradient.
Result<std::vector<ValueId>> Differentiate(Graph& graph, const OpRegistry& ops,
                                           const std::vector<GradientSeed>& seeds,
                                           const std::vector<ValueId>& wrt);

}  // namespace thimble
