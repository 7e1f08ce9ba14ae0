// Fuses a convolution whose output is only added to something with that sum: one node, one pass
// over memory less. Same bits.
#pragma once

#include <memory>

#include "thimble/graph/graph.h"
#include "thimble/program/technique.h"

namespace thimble {

// Replaces every add that is the only reader of a conv2d by a conv2d_add, which writes the output
// of the add and has the layer of the convolution. If both inputs of an add are such convolutions,
// the first is fused. For forward graphs that have not been differentiated. Renumbers values and
// nodes: earlier ids are invalid, names stay valid.
void FuseConvAdd(Graph& graph);

std::unique_ptr<const Technique> MakeFuseConvAdd();

}  // namespace thimble
