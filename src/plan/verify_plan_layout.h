// The part of VerifyPlan that needs no playing: what can be said of sizes, offsets and live ranges
// as they stand. Shares no code with the planners.
#pragma once

#include "thimble/base/result.h"
#include "thimble/plan/plan.h"

namespace thimble {

// Requires a verified graph. Succeeds only if every value has a buffer of its size; everything lies
// inside the arena, aligned; residents are apart from each other and below all else, persistent
// values and their next versions lie in theirs; live ranges of values lie inside those of their
// buffers, and buffers whose live ranges overlap share no byte. After success every id in the
// plan's values is valid and no offset plus size overflows.
Result<void> VerifyPlanLayout(const Plan& plan);

}  // namespace thimble
