// The last action of a run: writes its summary and notifies the observer.
#pragma once

#include "thimble/base/result.h"
#include "thimble/train/loop/trainer.h"
#include "thimble/train/options/config.h"
#include "thimble/train/run_folder/run_folder.h"

namespace thimble {

// Reads the process's peak, writes summary.json and calls observer.OnFinish. If that call raised
// the peak (a report drawn in this process), does it again, so that the file and the observer have
// the final peak.
Result<void> PublishSummary(const RunFolder& folder, const TrainConfig& config,
                            TrainObserver& observer, TrainSummary& summary);

}  // namespace thimble
