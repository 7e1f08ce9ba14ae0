#include "thimble/train/loop/publish_summary.h"

#include "thimble/device/cpu/arena.h"
#include "thimble/train/run_folder/metrics.h"

namespace thimble {
namespace {

Result<void> Write(const RunFolder& folder, const TrainConfig& config, TrainSummary& summary) {
  summary.process_peak_bytes = ProcessPeakBytes();
  summary.json = SummaryJson(summary, config);
  return folder.Write("summary.json", summary.json);
}

}  // namespace

Result<void> PublishSummary(const RunFolder& folder, const TrainConfig& config,
                            TrainObserver& observer, TrainSummary& summary) {
  // The second time reuses the memory of the first; the third is a reserve.
  constexpr int kTimes = 3;
  for (int time = 0; time < kTimes; ++time) {
    THIMBLE_TRY(Write(folder, config, summary));
    observer.OnFinish(summary);
    if (ProcessPeakBytes() == summary.process_peak_bytes) return {};
  }
  return Write(folder, config, summary);
}

}  // namespace thimble
