// Independent check that a graph with rebuilt values computes the same as the original graph.
#pragma once

#include "thimble/base/result.h"
#include "thimble/graph/graph.h"
#include "thimble/graph/op_def.h"

namespace thimble {

// Succeeds only if every node of `original` exists once with the same op, attributes, phase and
// outputs, and reads the same values or rebuilt copies; and every other node runs in backward and
// rebuilds a value with the op that made it, or with that op's rule, from the same inputs. Values
// of `original` keep their ids. Shares no code with the passes that make such graphs.
Result<void> VerifyRebuilt(const Graph& original, const Graph& rebuilt, const OpRegistry& ops);

}  // namespace thimble
