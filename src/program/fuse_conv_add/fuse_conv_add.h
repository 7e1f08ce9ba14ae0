// A convolution whose output is only added to something becomes one node with the sum: one pass
// over memory less. Same bits.
#pragma once

#include <memory>

#include "thimble/graph/graph.h"
#include "thimble/program/technique.h"

namespace thimble {

// Every add that is the only reader of a conv2d becomes a conv2d_add, which writes what the add
// wrote; the convolution, with its layer, moves to the place of the add. Where both of an add's
// inputs are such convolutions, the first one does. To be called on a forward graph, before it is
// differentiated. Values and nodes are numbered anew, so ids from before are void; names are not.
void FuseConvAdd(Graph& graph);

std::unique_ptr<const Technique> MakeFuseConvAdd();

}  // namespace thimble
