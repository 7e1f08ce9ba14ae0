// What was measured while a run went on, for its summary, and the verdict on it.
#pragma once

#include "thimble/base/result.h"
#include "thimble/exec/executor.h"
#include "thimble/train/run_folder/train_summary.h"

namespace thimble {

// Fills in what the executor and its device know: peaks, allocations, threads. The arena must have
// been scanned.
void AddMeasurements(Executor& executor, TrainSummary& summary);

// kFailed where planned and measured memory differ, or where memory was allocated during a step.
Result<void> CheckMeasurements(const Executor& executor, const TrainSummary& summary);

}  // namespace thimble
