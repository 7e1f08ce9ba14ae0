// FewestBytes: how far down the schedules of a chain can get, without finding them.
#pragma once

#include <cstddef>

#include "thimble/plan/recompute/chain.h"

namespace thimble {

// The bytes of the first of OptimalSchedules(graph, ops, chain).tradeoffs(), in a small part of the
// time that all of them take; 0 if there are no stages.
size_t FewestBytes(const Graph& graph, const OpRegistry& ops, const Chain& chain);

}  // namespace thimble
