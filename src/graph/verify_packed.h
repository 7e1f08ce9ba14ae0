// Checks the packed values of a graph: that pools and patterns exist and have room for them, and
// that nodes access a pool only through its values.
#pragma once

#include "thimble/base/result.h"
#include "thimble/graph/graph.h"

namespace thimble {

// Requires valid ids in nodes and carries. kBadInput names the first wrong value.
Result<void> VerifyPacked(const Graph& graph);

}  // namespace thimble
