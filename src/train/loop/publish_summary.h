// The last thing a run does: its summary, as a file and for whoever listens.
#pragma once

#include "thimble/base/result.h"
#include "thimble/train/loop/trainer.h"
#include "thimble/train/options/config.h"
#include "thimble/train/run_folder/run_folder.h"

namespace thimble {

// Reads the process's peak, writes summary.json and tells the observer. Where telling it took more
// memory than the run had (a report drawn in this process), all of it is done again, so that the
// file and what the observer made of it say what the kernel says at the end.
Result<void> PublishSummary(const RunFolder& folder, const TrainConfig& config,
                            TrainObserver& observer, TrainSummary& summary);

}  // namespace thimble
