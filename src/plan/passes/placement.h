// Placement: buffers whose live ranges do not overlap share addresses.
#pragma once

#include <memory>

#include "thimble/plan/pass.h"

namespace thimble {

// Reads: liveness, storage.  Changes: offsets.  Keeps: results bit for bit.  Costs: nothing.
std::unique_ptr<PlanPass> MakePlacementPass();

}  // namespace thimble
