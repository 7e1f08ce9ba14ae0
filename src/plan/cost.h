// Arithmetic and memory traffic of a graph, from the counts of its ops.
#pragma once

#include <cstdint>

#include "thimble/graph/graph.h"
#include "thimble/graph/op_def.h"

namespace thimble {

struct NodeCost {
  int64_t flops = 0;
  int64_t bytes = 0;  // inputs read once, outputs written once
};
NodeCost CostOf(const Graph& graph, const OpRegistry& ops, const Node& node);

// Whether the node runs forward work again in backward.
bool RebuildsValues(const Graph& graph, const Node& node);

struct GraphCost {
  int64_t forward_flops = 0;
  int64_t step_flops = 0;       // forward, backward and update
  int64_t recompute_flops = 0;  // forward work done again in backward
};
GraphCost CostOf(const Graph& graph, const OpRegistry& ops);

}  // namespace thimble
