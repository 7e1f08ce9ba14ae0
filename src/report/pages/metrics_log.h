// MetricsLog: the contents of a run's metrics.jsonl.
#pragma once

#include <string_view>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/report/plots/curve_plot.h"

namespace thimble {

// Each metric over the steps of a run.
struct MetricsLog {
  // By step.
  std::vector<CurvePoint> loss;
  std::vector<CurvePoint> learning_rate;
  std::vector<CurvePoint> loss_scale;  // if the run scaled its loss
  // By rewiring of sparse weights.
  std::vector<CurvePoint> moved_weights;
  std::vector<CurvePoint> threshold;
  std::vector<std::vector<CurvePoint>> active_weights;  // of each sparse layer
  // By epoch, at the step that ended it.
  std::vector<CurvePoint> train_loss;
  std::vector<CurvePoint> train_accuracy;  // 0 to 1, like all accuracies
  std::vector<CurvePoint> test_loss;
  std::vector<CurvePoint> test_accuracy;
  std::vector<CurvePoint> bleu;  // of translations of the test set, 0 to 100
  std::vector<CurvePoint> validation_loss;
  std::vector<CurvePoint> validation_accuracy;
  double seconds = 0;           // up to the last epoch
  bool last_line_torn = false;  // incomplete: being written, or the run was killed
};

// Parses untrusted text. An error names the line and what was expected. A last line without a
// newline is skipped and sets last_line_torn.
Result<MetricsLog> MetricsFromLines(std::string_view text);

}  // namespace thimble
