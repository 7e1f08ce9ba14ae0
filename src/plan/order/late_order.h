// An order of backward that finishes what it has begun: for plans that rebuild forward values.
#pragma once

#include <vector>

#include "thimble/graph/graph.h"

namespace thimble {

// Forward and update as in `order`. In backward
// - gradients that others are computed from are made as late as those allow: one branch is followed
//   to its beginning before another is started;
// - gradients that nobody in backward reads, or that are only added up (of parameters), are made
//   right before their layer's other ones, or as soon as a forward value that they read has been
//   read by someone else, so that it need not stay, or be rebuilt, for them;
// - the next version of a persistent value is made as soon as all who read the old one have run.
std::vector<NodeId> MakeLateOrder(const Graph& graph, const std::vector<NodeId>& order);

}  // namespace thimble
