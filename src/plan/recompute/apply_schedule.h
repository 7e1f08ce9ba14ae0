// From a schedule to a draft: each repeated run of a forward node becomes a new node.
#pragma once

#include "thimble/plan/draft.h"
#include "thimble/plan/recompute/rebuild_schedule.h"

namespace thimble {

// The draft in which nodes run in the order of the schedule. For each repeated run of a forward
// node its graph has a new node, in the backward phase, and new values. A node reads the latest
// copy of a value. Storage is reset: no value shares a buffer.
PlanDraft ApplySchedule(const PlanDraft& draft, const Chain& chain,
                        const RebuildSchedule& schedule);

}  // namespace thimble
