// Rest: bytes are not used again at once where there is room, so that steps can run side by side.
#pragma once

#include <memory>

#include "thimble/plan/pass.h"

namespace thimble {

// Reads: liveness, offsets.  Changes: offsets, for devices that run steps side by side.  Keeps:
// results bit for bit, the peak.  Costs: nothing.
std::unique_ptr<PlanPass> MakeRestPass();

}  // namespace thimble
