// From a schedule to a draft: forward nodes that run again become nodes of their own.
#pragma once

#include "thimble/plan/draft.h"
#include "thimble/plan/recompute/rebuild_schedule.h"

namespace thimble {

// The draft in which nodes run as the schedule says: its graph has a node, and new values, for each
// time a forward node runs again, in the backward phase. The values that a node reads are those
// built last before it. Storage starts anew: every value by itself.
PlanDraft ApplySchedule(const PlanDraft& draft, const Chain& chain,
                        const RebuildSchedule& schedule);

}  // namespace thimble
