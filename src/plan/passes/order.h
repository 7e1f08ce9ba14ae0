// Execution order: among the orders that respect the data flow, one with fewer bytes alive at the
// peak.
#pragma once

#include <memory>

#include "thimble/plan/pass.h"

namespace thimble {

// Reads: liveness.  Changes: order within each phase.  Keeps: results bit for bit.  Costs: nothing.
std::unique_ptr<PlanPass> MakeOrderPass();

}  // namespace thimble
