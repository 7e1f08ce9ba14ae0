// Independent check that a graph with rebuilt values computes what the graph without them does.
#pragma once

#include "thimble/base/result.h"
#include "thimble/graph/graph.h"
#include "thimble/graph/op_def.h"

namespace thimble {

// Succeeds only if every node of `original` is there once with the same op, attributes, phase and
// outputs, reading the same values or rebuilt ones in their place; and every further node runs in
// backward and rebuilds a value by the op that made it, or by that op's rule, from the same. Values
// of `original` keep their ids. Shares no code with what makes such graphs.
Result<void> VerifyRebuilt(const Graph& original, const Graph& rebuilt, const OpRegistry& ops);

}  // namespace thimble
