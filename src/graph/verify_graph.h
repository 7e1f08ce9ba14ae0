// Independent check of a graph's invariants; run after every change that builds or rewrites one.
#pragma once

#include "thimble/base/result.h"
#include "thimble/graph/graph.h"
#include "thimble/graph/op_def.h"

namespace thimble {

// Names are unique; every value is written at most once and before it is read; shapes and types are
// what the ops' rules give, attributes those that the ops define; no size overflows; persistent
// values and inputs have no producer unless a carry makes them the next version of one; carries
// join values of one shape, type and role.
Result<void> VerifyGraph(const Graph& graph, const OpRegistry& ops);

}  // namespace thimble
