// RebuildSchedule: the nodes of a training step in the order they run, forward ones as often as it
// takes.
#pragma once

#include <vector>

#include "thimble/plan/recompute/chain.h"
#include "thimble/plan/recompute/recompute_spec.h"
#include "thimble/plan/recompute/stretches.h"

namespace thimble {

// Every forward node for the first time before any backward step, and all backward steps in their
// order. A forward node that comes again rebuilds its values; whoever reads a value takes the one
// built last. The update follows and is not part of this.
using RebuildSchedule = std::vector<ChainStep>;

// Forward once; in backward, values that are not kept are rebuilt right before the first step that
// reads them, from what is there, and stay until the last. `kept`: by ValueId; fixed values always
// are.
RebuildSchedule ScheduleKeeping(const Graph& graph, const Chain& chain,
                                const std::vector<bool>& kept);

// The schedule of a named strategy. Requires one that is not kOptimal.
//
// A block ends where a single value crosses, and one that is not cheap to rebuild: between two
// residual blocks, or behind a convolution in a plain chain.
RebuildSchedule MakeNamedSchedule(const Graph& graph, const OpRegistry& ops, const Chain& chain,
                                  const RecomputeSpec& spec);

}  // namespace thimble
