// Feeds arbitrary text to the reader of metrics.jsonl and draws the curves that it accepts.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fuzz/check_error.h"
#include "fuzz/scratch_folder.h"
#include "thimble/report/pages/metrics_log.h"

namespace thimble {
namespace {

// Draws them as the report does: with an automatic axis, an axis from zero, and as shares.
void Draw(const std::vector<CurvePoint>& points) {
  for (const std::string unit : {"", "%"}) {
    for (const bool from_zero : {false, true}) {
      const CurveChart chart{"loss", unit, {{"", 0, points}}, from_zero};
      THIMBLE_CHECK(!CurvePlot(chart, 400).File().empty(), "no plot");
    }
  }
  THIMBLE_CHECK(ThinnedOut(points, 8).size() <= points.size(), "thinning added points");
}

void ReadAndDraw(std::string_view text) {
  const Result<MetricsLog> log = MetricsFromLines(text);
  if (!log.ok()) return CheckError(log.error(), "line ");
  for (const auto* points :
       {&log->loss, &log->learning_rate, &log->loss_scale, &log->train_loss, &log->train_accuracy,
        &log->test_loss, &log->test_accuracy, &log->validation_loss, &log->validation_accuracy}) {
    if (!points->empty()) Draw(*points);
  }
}

}  // namespace
}  // namespace thimble

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  thimble::ReadAndDraw(thimble::AsText(bytes, size));
  return 0;
}
