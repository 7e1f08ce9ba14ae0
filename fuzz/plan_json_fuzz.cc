// Feeds arbitrary text to the reader of plan.json. Accepted plans are written and read again, and
// summarized and drawn as in reports.
#include <cstddef>
#include <cstdint>

#include "fuzz/check_error.h"
#include "fuzz/scratch_folder.h"
#include "thimble/plan/layer_record.h"
#include "thimble/plan/plan_json.h"
#include "thimble/report/plan_text.h"
#include "thimble/report/plots/arena_map.h"
#include "thimble/report/plots/layer_bars.h"
#include "thimble/report/plots/memory_plot.h"

namespace thimble {
namespace {

constexpr double kPlotWidth = 400;

void Draw(const ProgramRecord& record) {
  const PlanRecord& plan = record.plans.front();
  for (const Svg& plot : {ArenaMap(plan, kPlotWidth), MemoryPlot(plan, kPlotWidth),
                          StackedBars(LayersAtPeak(plan), kPlotWidth, "layers")}) {
    THIMBLE_CHECK(!plot.File().empty(), "no plot");
  }
  const PlanAnswer answer{.model = "m", .batch = 1, .record = record, .with_layers = true};
  THIMBLE_CHECK(!PlanText(answer).empty(), "no text");
  THIMBLE_CHECK(!ToJson(answer).empty() && !ToCsv(answer).empty(), "no answer");
}

void ReadTwice(std::string_view text) {
  const Result<ProgramRecord> record = ProgramRecordFromJson(text);
  if (!record.ok()) return CheckError(record.error(), "");
  const Result<ProgramRecord> again = ProgramRecordFromJson(ToJson(*record));
  THIMBLE_CHECK(again.ok() && *again == *record, "not the same when written and read again");
  THIMBLE_CHECK(StepCost(*record).step_flops >= 0, "a negative cost");
  THIMBLE_CHECK(!LayersOf(*record).empty() || record->plans.front().holdings.empty(), "no layers");
  Draw(*record);
}

}  // namespace
}  // namespace thimble

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  thimble::ReadTwice(thimble::AsText(bytes, size));
  return 0;
}
