// Runs a few training steps on synthetic images and measures their memory and time.
#pragma once

#include "thimble/exec/executor.h"
#include "thimble/train/options/config.h"
#include "thimble/train/planning/training_program.h"
#include "thimble/train/profile/profile.h"

namespace thimble {

// The first run is audited: each buffer and resident is measured. Then `repeat` runs are timed as a
// whole, and as many op by op. Writes no files and does not read the data set. kDoesNotFit, before
// anything is allocated, if the arena is above the budget.
// Requires repeat >= 1 and a program planned with `ops` for this configuration.
Result<Profile> RunProfile(const TrainConfig& config, const TrainingProgram& program, int repeat,
                           const OpRegistry& ops);

// The same with an executor of the program whose plans have not run yet.
Profile RunProfile(const TrainConfig& config, const TrainingProgram& program, int repeat,
                   const OpRegistry& ops, Executor& executor);

}  // namespace thimble
