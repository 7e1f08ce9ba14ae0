// Independent check of a plan: simulates it and checks that every value that a step reads is still
// intact in the arena. Shares no code with the passes that made the plan.
#pragma once

#include "thimble/base/result.h"
#include "thimble/graph/op_def.h"
#include "thimble/plan/plan.h"

namespace thimble {

// Succeeds only if
// - every node of the plan's graph runs exactly once, with a kernel of the plan's device that
//   accepts it and the scratch that this kernel requires, and no node of a later phase runs before
//   one of an earlier phase;
// - every step's inputs are intact in the arena when it runs: written (or present before the first
//   step) and not overwritten since by another value, a later version or scratch;
// - an output shares bytes with an input of the same step only if the op allows that pair, at the
//   same offset, and if that input is not read later; scratch and outputs share none;
// - persistent values are at the offsets of the resident layout, and only their own versions (by
//   carries) are ever written there, in the order of their chain; after the last step the last
//   version is intact there;
// - graph outputs are intact after the last step; everything is inside the arena and aligned,
//   residents do not overlap; sizes match shapes; live ranges cover the actual uses.
Result<void> VerifyPlan(const OpRegistry& ops, const Plan& plan);

}  // namespace thimble
