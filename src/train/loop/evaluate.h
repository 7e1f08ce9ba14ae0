// Evaluation: loss and accuracy of the current weights over a data set.
#pragma once

#include "thimble/base/result.h"
#include "thimble/data/batch_source.h"
#include "thimble/exec/executor.h"
#include "thimble/train/planning/training_program.h"
#include "thimble/train/run_folder/train_summary.h"

namespace thimble {

// Runs the program's evaluation plans over all batches inside the executor's arena. The first run
// of each plan is audited.
Result<Evaluation> Evaluate(Executor& executor, const TrainingProgram& program,
                            const EvaluationSource& batches);

// Translates the test set and sets report.test.bleu, if answers are sentences and the BLEU of this
// epoch is wanted (--bleu-every). `is_last`: the run ends with this epoch.
Result<void> TranslateTest(Executor& executor, const TrainingProgram& program, const TaskData& data,
                           const TrainConfig& config, bool is_last, EpochReport& report);

// Evaluates the test data and, if there are any, the validation data.
Result<void> EvaluateParts(Executor& executor, const TrainingProgram& program, const TaskData& data,
                           EpochReport& report);

}  // namespace thimble
