// Fuses a norm with the following ReLU into one node: one pass over memory instead of two in
// forward, and no separate array in backward. Same bits.
#pragma once

#include <memory>

#include "thimble/graph/graph.h"
#include "thimble/program/technique.h"

namespace thimble {

// Removes every relu that is the only reader of a batch_norm, batch_norm_eval or group_norm; the
// norm gets relu=1 and writes the output of the relu. The name of the output and the layer of the
// norm stay. For forward graphs that have not been differentiated. Renumbers values and nodes:
// earlier ids are invalid, names stay valid.
void FuseNormRelu(Graph& graph);

std::unique_ptr<const Technique> MakeFuseNormRelu();

}  // namespace thimble
