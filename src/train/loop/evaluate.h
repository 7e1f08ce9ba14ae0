// Evaluation: loss and accuracy of the current weights over a data set.
#pragma once

#include "thimble/base/result.h"
#include "thimble/data/image_dataset.h"
#include "thimble/exec/executor.h"
#include "thimble/train/planning/training_program.h"
#include "thimble/train/run_folder/train_summary.h"

namespace thimble {

// Runs the program's evaluation plans over all images, in order, inside the executor's arena. The
// first run of each plan is audited.
Result<Evaluation> Evaluate(Executor& executor, const TrainingProgram& program,
                            const ImageDataset& dataset);

}  // namespace thimble
