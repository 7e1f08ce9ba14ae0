// Evaluates weights from a file, in an arena planned for evaluation alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "thimble/base/result.h"
#include "thimble/graph/op_def.h"
#include "thimble/train/loop/evaluate.h"
#include "thimble/train/options/config.h"
#include "thimble/train/translate/measure_bleu.h"

namespace thimble {

struct EvaluationRun {
  Evaluation evaluation;
  std::string unit;                              // what was counted (Task::unit)
  std::optional<TranslationScore> translations;  // if there are sentences to translate
  int64_t arena_bytes = 0;
  std::string json;
};

// The settings of a run, changed for evaluation: the batch is the largest part that it trained.
TrainConfig EvaluationConfig(TrainConfig run);

// `part` is "train", "validation" or "test".
Result<EvaluationRun> EvaluateWeights(const TrainConfig& config, const std::string& weights,
                                      const std::string& part, const OpRegistry& ops);

}  // namespace thimble
