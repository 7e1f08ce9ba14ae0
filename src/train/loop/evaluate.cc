#include "thimble/train/loop/evaluate.h"

#include "thimble/data/batches.h"
#include "thimble/train/loop/batch_feed.h"
#include "thimble/train/loop/run_queue.h"

namespace thimble {

Result<Evaluation> Evaluate(Executor& executor, const TrainingProgram& program,
                            const ImageDataset& dataset) {
  const EvalBatches batches(dataset, program.part);
  BatchFeed feed(batches, executor, /*num_slots=*/0, program.part);
  RunQueue queue(executor);
  Evaluation result;
  double loss_sum = 0;
  int64_t correct = 0;
  int64_t launched = 0;
  for (int64_t step = 0; step < batches.num_steps(); ++step) {
    for (; launched < batches.num_steps() && !queue.full(); ++launched) {
      const PlanPorts& ports = queue.Begin(program.EvaluatePlan(batches.CountAt(launched)));
      THIMBLE_TRY(feed.Next(launched, ports.images, ports.labels));
      queue.Launch();
    }
    const FinishedRun run = queue.Collect();
    const int64_t count = batches.CountAt(step);
    loss_sum += run.loss * static_cast<double>(count);
    correct += run.correct;
    result.images += count;
  }
  result.loss = loss_sum / static_cast<double>(result.images);
  result.accuracy = static_cast<double>(correct) / static_cast<double>(result.images);
  return result;
}

}  // namespace thimble
