// The part of VerifyPlan that needs no simulation: checks of sizes, offsets and live ranges. Shares
// no code with the planners.
#pragma once

#include "thimble/base/result.h"
#include "thimble/plan/plan.h"

namespace thimble {

// Requires a verified graph. Succeeds only if every value has a buffer of its size; everything is
// inside the arena and aligned; residents do not overlap and are below everything else; persistent
// values and their next versions are in their residents; live ranges of values are inside those of
// their buffers; and buffers whose live ranges overlap share no byte. After success every id in the
// plan's values is valid and no offset plus size overflows.
Result<void> VerifyPlanLayout(const Plan& plan);

}  // namespace thimble
