// An order that finishes one branch of backward before the next: for plans that rebuild values.
#pragma once

#include <vector>

#include "thimble/graph/graph.h"

namespace thimble {

// Forward and update are as in `order`. In backward
// - gradients that other nodes need are computed as late as these allow: one branch is followed to
//   its beginning before another is started;
// - gradients that no backward node reads, or that are only accumulated (of parameters), are
//   computed right before their layer's other gradients, or as soon as another node has read a
//   forward value that they read, so that it need not be kept or rebuilt for them;
// - the next version of a persistent value is made as soon as all readers of the old one have run.
std::vector<NodeId> MakeLateOrder(const Graph& graph, const std::vector<NodeId>& order);

}  // namespace thimble
