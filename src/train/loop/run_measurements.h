// Measurements of a run for its summary, and their check.
#pragma once

#include "thimble/base/result.h"
#include "thimble/exec/executor.h"
#include "thimble/train/run_folder/train_summary.h"

namespace thimble {

// Fills in the measurements of the executor and its device: peaks, allocations, threads. Requires
// that the arena was scanned.
void AddMeasurements(Executor& executor, TrainSummary& summary);

// kFailed if planned and measured memory differ, or if memory was allocated during a step.
Result<void> CheckMeasurements(const Executor& executor, const TrainSummary& summary);

}  // namespace thimble
