// The levers of the planner: what its options (plan/draft.h) are set by.
#pragma once

#include <vector>

#include "thimble/program/lever.h"

namespace thimble {

// recompute, conv, scratch.
const std::vector<Lever>& PlanLevers();

}  // namespace thimble
