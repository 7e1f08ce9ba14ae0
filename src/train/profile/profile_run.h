// Runs a few steps of the training plan on made images and measures what they use and how long
// they take.
#pragma once

#include "thimble/exec/executor.h"
#include "thimble/train/options/config.h"
#include "thimble/train/planning/training_program.h"
#include "thimble/train/profile/profile.h"

namespace thimble {

// The first run is audited: each buffer and resident is measured. Then `repeat` runs are timed step
// by step and as many as a whole. Nothing is written to files, and none of the data set is read.
// kDoesNotFit where the arena is above the budget, before anything is allocated.
// Requires repeat >= 1 and a program planned with `ops` for this configuration.
Result<Profile> RunProfile(const TrainConfig& config, const TrainingProgram& program, int repeat,
                           const OpRegistry& ops);

// The same with this executor of the program, whose plans have not run yet.
Profile RunProfile(const TrainConfig& config, const TrainingProgram& program, int repeat,
                   const OpRegistry& ops, Executor& executor);

}  // namespace thimble
