// Recompute (gradient checkpointing): forward values are dropped and rebuilt when backward reads
// them.
#pragma once

#include <memory>

#include "thimble/plan/pass.h"

namespace thimble {

// Reads: liveness, cost, kernels.  Changes: graph, order, kernels.  Keeps: results bit for bit.
// Costs: the work of nodes that run again (reported).
std::unique_ptr<PlanPass> MakeRecomputePass();

}  // namespace thimble
