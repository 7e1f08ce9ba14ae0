// Evaluation: loss and accuracy of the current weights over a data set.
#pragma once

#include "thimble/base/result.h"
#include "thimble/data/image_dataset.h"
#include "thimble/exec/executor.h"
#include "thimble/train/training_program.h"

namespace thimble {

struct Evaluation {
  double loss = 0;      // mean over the images
  double accuracy = 0;  // share of right answers, 0..1
  int64_t images = 0;
};

// Runs the program's evaluation plans over all images, in order, inside the executor's arena. The
// first run of each plan is audited.
Result<Evaluation> Evaluate(Executor& executor, const TrainingProgram& program,
                            const ImageDataset& dataset);

}  // namespace thimble
