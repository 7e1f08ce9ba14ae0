// MetricsLog: what a run's metrics.jsonl says, read back.
#pragma once

#include <string_view>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/report/plots/curve_plot.h"

namespace thimble {

// One value of the metrics over the steps of a run.
struct MetricsLog {
  // By step.
  std::vector<CurvePoint> loss;
  std::vector<CurvePoint> learning_rate;
  std::vector<CurvePoint> loss_scale;  // where the run scaled its loss
  // By epoch, at the step that ended it.
  std::vector<CurvePoint> train_loss;
  std::vector<CurvePoint> train_accuracy;  // 0 to 1, as are the others
  std::vector<CurvePoint> test_loss;
  std::vector<CurvePoint> test_accuracy;
  std::vector<CurvePoint> validation_loss;
  std::vector<CurvePoint> validation_accuracy;
  double seconds = 0;           // up to the last epoch
  bool last_line_torn = false;  // it has no end: the run is just writing it, or was killed there
};

// Distrusts the text. An error names the line and what was expected; a last line without an end is
// left out and noted.
Result<MetricsLog> MetricsFromLines(std::string_view text);

}  // namespace thimble
