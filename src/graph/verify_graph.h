// Independent check of a graph's invariants; run after every change that builds or rewrites one.
#pragma once

#include "thimble/base/result.h"
#include "thimble/graph/graph.h"
#include "thimble/graph/op_def.h"

namespace thimble {

// Checks that names are unique; every value is written at most once and before it is read; shapes,
// types and attributes are as the ops define them; no size overflows; persistent values and inputs
// have no producer unless a carry makes them a next version; carries connect values of the same
// shape, type and role.
Result<void> VerifyGraph(const Graph& graph, const OpRegistry& ops);

}  // namespace thimble
