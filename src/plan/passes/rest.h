// Rest: if memory allows, bytes are reused only some steps later, so that steps can run in
// parallel.
#pragma once

#include <memory>

#include "thimble/plan/pass.h"

namespace thimble {

// Reads: liveness, offsets.  Changes: offsets, for devices that run steps in parallel.  Keeps:
// results bit for bit, the peak.  Costs: nothing.
std::unique_ptr<PlanPass> MakeRestPass();

}  // namespace thimble
