// Independent check of a plan: plays it through and sees that every value a step reads is still
// whole in the arena. Shares no code with the passes that made the plan.
#pragma once

#include "thimble/base/result.h"
#include "thimble/graph/op_def.h"
#include "thimble/plan/plan.h"

namespace thimble {

// Succeeds only if
// - every node of the plan's graph runs exactly once, with a kernel of the plan's device that
//   accepts it and the scratch that kernel asks for, and no node of a later phase runs before one
//   of an earlier;
// - every step's inputs lie whole in the arena when it runs: written (or there before the first
//   step) and not overwritten since by another value, a later version or scratch;
// - an output shares bytes with an input of the same step only where the op allows that pair, at
//   the same offset, and where nobody reads that input later; scratch and outputs share none;
// - persistent values lie where the resident layout says and only their own versions (by carries)
//   are ever written there, in the order of their chain; after the last step the last version lies
//   in its place, whole;
// - graph outputs are whole after the last step; everything lies inside the arena, aligned,
//   residents do not overlap; sizes match shapes; live ranges cover the actual uses.
Result<void> VerifyPlan(const OpRegistry& ops, const Plan& plan);

}  // namespace thimble
