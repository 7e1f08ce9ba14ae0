#include "thimble/train/evaluate.h"

#include "thimble/data/batches.h"

namespace thimble {

Result<Evaluation> Evaluate(Executor& executor, const TrainingProgram& program,
                            const ImageDataset& dataset) {
  const EvalBatches batches(dataset, program.batch);
  Evaluation result;
  double loss_sum = 0;
  int64_t correct = 0;
  for (int64_t step = 0; step < batches.num_steps(); ++step) {
    const int64_t count = batches.CountAt(step);
    const size_t plan = program.EvaluatePlan(count);
    executor.Prepare(plan);
    THIMBLE_TRY(batches.Fill(step, executor.View(plan, kImagesInput).As<uint8_t>(),
                             executor.View(plan, kLabelsInput).As<int32_t>()));
    executor.Run(plan);
    loss_sum += static_cast<double>(executor.View(plan, kLossOutput).As<float>()[0]) *
                static_cast<double>(count);
    correct += executor.View(plan, kCorrectOutput).As<int32_t>()[0];
    result.images += count;
  }
  result.loss = loss_sum / static_cast<double>(result.images);
  result.accuracy = static_cast<double>(correct) / static_cast<double>(result.images);
  return result;
}

}  // namespace thimble
