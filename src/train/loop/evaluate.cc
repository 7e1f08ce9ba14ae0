#include "thimble/train/loop/evaluate.h"

#include <vector>

#include "thimble/train/loop/batch_feed.h"
#include "thimble/train/loop/run_queue.h"
#include "thimble/train/translate/measure_bleu.h"

namespace thimble {
namespace {

std::vector<BatchShape> EvaluatedShapes(const TrainingProgram& program) {
  std::vector<BatchShape> shapes;
  for (const auto& [shape, plan] : program.evaluate_plans) shapes.push_back(shape);
  return shapes;
}

}  // namespace

Result<Evaluation> Evaluate(Executor& executor, const TrainingProgram& program,
                            const EvaluationSource& batches) {
  BatchFeed feed(batches, executor, /*num_slots=*/0, EvaluatedShapes(program));
  RunQueue queue(executor, batches.fields());
  Evaluation result;
  double loss_sum = 0;
  int64_t correct = 0;
  int64_t launched = 0;
  for (int64_t number = 0; number < batches.num_batches(); ++number) {
    for (; launched < batches.num_batches() && !queue.full(); ++launched) {
      const PlanPorts& ports = queue.Begin(program.EvaluatePlan(batches.ShapeAt(launched)));
      THIMBLE_TRY(feed.Next(launched, ports.batch));
      queue.Launch();
    }
    const FinishedRun run = queue.Collect();
    const int64_t count = batches.CountAt(number);
    loss_sum += program.task->loss_is_sum() ? run.loss : run.loss * static_cast<double>(count);
    correct += run.correct;
    result.count += count;
  }
  result.loss = loss_sum / static_cast<double>(result.count);
  result.accuracy = static_cast<double>(correct) / static_cast<double>(result.count);
  return result;
}

Result<void> TranslateTest(Executor& executor, const TrainingProgram& program, const TaskData& data,
                           const TrainConfig& config, bool is_last, EpochReport& report) {
  const bool due = is_last || (config.bleu_every > 0 && report.epoch % config.bleu_every == 0);
  if (!program.decoding || !due) return {};
  THIMBLE_ASSIGN_OR_RETURN(const TranslationScore score,
                           MeasureBleu(executor, *program.decoding, SearchOptionsOf(config),
                                       *data.Sentences(DataPart::kTest)));
  report.test.bleu = score.bleu;
  return {};
}

Result<void> EvaluateParts(Executor& executor, const TrainingProgram& program, const TaskData& data,
                           EpochReport& report) {
  const auto evaluate = [&](DataPart part) {
    return Evaluate(executor, program, *data.Evaluation(part, program.part));
  };
  if (data.Has(DataPart::kValidation)) {
    THIMBLE_ASSIGN_OR_RETURN(report.validation, evaluate(DataPart::kValidation));
  }
  THIMBLE_ASSIGN_OR_RETURN(report.test, evaluate(DataPart::kTest));
  return {};
}

}  // namespace thimble
