// The levers that set the planner's options (plan/draft.h).
#pragma once

#include <vector>

#include "thimble/program/lever.h"

namespace thimble {

// recompute, conv, scratch.
const std::vector<Lever>& PlanLevers();

}  // namespace thimble
