#include "thimble/train/loop/evaluate_run.h"

#include <fmt/format.h>

#include "thimble/base/json.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/program/techniques.h"
#include "thimble/train/options/options.h"
#include "thimble/train/options/usual_settings.h"
#include "thimble/train/planning/budget_advice.h"
#include "thimble/train/planning/training_program.h"
#include "thimble/train/task/find_task.h"
#include "thimble/train/weights/program_tensors.h"

namespace thimble {

TrainConfig EvaluationConfig(TrainConfig run) {
  const int64_t part = CutBatch(BatchShape{run.batch}, RequestOf(run)).LargestSize();
  for (const Lever* lever : Levers()) {
    if (lever->training_only) Set(*lever, lever->plain, run);
  }
  run.batch = part;
  return run;
}

Result<EvaluationRun> EvaluateWeights(const TrainConfig& config, const std::string& weights,
                                      const std::string& part, const OpRegistry& ops) {
  THIMBLE_TRY(CheckDevice(DeviceOf(config)));
  THIMBLE_TRY(PinSimdTarget(config.simd));
  THIMBLE_ASSIGN_OR_RETURN(const OpenedTask opened, OpenTask(config));
  THIMBLE_ASSIGN_OR_RETURN(const DataPart data_part, ParseDataPart(part));
  if (!opened.data->Has(data_part)) {
    return BadInput(IsTranslation(config) ? "part 'validation': the data have none"
                                          : "part 'validation': requires --validation N");
  }
  THIMBLE_ASSIGN_OR_RETURN(const TrainingProgram program,
                           MakeEvaluationProgram(config, opened.task, data_part, ops));
  THIMBLE_TRY(CheckEvaluationBudget(config, program, data_part, ops));
  THIMBLE_ASSIGN_OR_RETURN(const auto executor, Executor::CreateFor(program.program, ops));
  THIMBLE_TRY(LoadWeights(weights, PersistentTensors(*executor, TensorSet::kWeights)));
  executor->StoreResidents();
  EvaluationRun run;
  const auto batches = opened.data->Evaluation(data_part, config.batch);
  THIMBLE_ASSIGN_OR_RETURN(run.evaluation, Evaluate(*executor, program, *batches));
  if (program.decoding) {
    THIMBLE_ASSIGN_OR_RETURN(run.translations,
                             MeasureBleu(*executor, *program.decoding, SearchOptionsOf(config),
                                         *opened.data->Sentences(data_part)));
  }
  run.unit = opened.task->unit();
  run.arena_bytes = static_cast<int64_t>(program.program.arena_bytes);
  Json json{{"model", config.model},
            {"part", part},
            {run.unit, run.evaluation.count},
            {"loss", run.evaluation.loss},
            {"accuracy", run.evaluation.accuracy},
            {"arena_bytes", run.arena_bytes},
            {"device", config.device}};
  if (run.translations) {
    json["bleu"] = run.translations->bleu;
    json["sacrebleu"] = run.translations->sacrebleu;
    json["exact_sentences"] = run.translations->exact;
    json["sentences"] = run.translations->sentences;
    json["translation_seconds"] = run.translations->seconds;
  }
  run.json = json.Dump(1) + "\n";
  return run;
}

}  // namespace thimble
