// Planning itself takes memory, before there is an arena. A process that exceeds its control group
// is killed without a word, so this is checked first too.
#pragma once

#include "thimble/base/result.h"
#include "thimble/device/cpu/memory_limits.h"
#include "thimble/graph/op_def.h"
#include "thimble/train/task/task.h"

namespace thimble {

// Estimated memory for planning the task's network, with any options. 0 if it cannot be built:
// planning says why.
int64_t PlanningBytes(const Task& task, const OpRegistry& ops);

// kFailed, with the tightest limit, if planning would exceed one.
Result<void> CheckPlanningMemory(const Task& task, const OpRegistry& ops,
                                 const MemoryLimits& limits);

}  // namespace thimble
