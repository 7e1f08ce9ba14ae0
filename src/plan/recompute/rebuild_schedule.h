// RebuildSchedule: the nodes of a training step in execution order; forward nodes may run several
// times.
#pragma once

#include <vector>

#include "thimble/plan/recompute/chain.h"
#include "thimble/plan/recompute/recompute_spec.h"
#include "thimble/plan/recompute/stretches.h"

namespace thimble {

// Every forward node runs once before any backward step; backward steps run in their order. A
// forward node that runs again rebuilds its values; a node reads the latest copy of a value. The
// update follows and is not included.
using RebuildSchedule = std::vector<ChainStep>;

// Forward runs once. In backward, values that are not kept are rebuilt right before the first step
// that reads them, from the values that exist, and are kept until the last. `kept` is by ValueId;
// fixed values are always kept.
RebuildSchedule ScheduleKeeping(const Graph& graph, const Chain& chain,
                                const std::vector<bool>& kept);

// The schedule of a named strategy. `spec` must not be kOptimal.
//
// A block ends where only one value crosses and this value is not cheap to rebuild: between two
// residual blocks, or after a convolution in a plain chain.
RebuildSchedule MakeNamedSchedule(const Graph& graph, const OpRegistry& ops, const Chain& chain,
                                  const RecomputeSpec& spec);

}  // namespace thimble
