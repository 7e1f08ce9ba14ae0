// A norm followed by ReLU becomes one node: one pass over memory instead of two in forward, and
// no array of its own in backward. Same bits.
#pragma once

#include <memory>

#include "thimble/graph/graph.h"
#include "thimble/program/technique.h"

namespace thimble {

// Every relu that is the only reader of a batch_norm, batch_norm_eval or group_norm vanishes, and
// the norm, with relu=1, writes its output: name and layer stay. To be called on a forward graph,
// before it is differentiated. Values and nodes are numbered anew, so ids from before are void;
// names are not.
void FuseNormRelu(Graph& graph);

std::unique_ptr<const Technique> MakeFuseNormRelu();

}  // namespace thimble
