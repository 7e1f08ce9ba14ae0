// Lines of metrics.jsonl and the content of summary.json.
#pragma once

#include <string>
#include <string_view>

#include "thimble/train/options/config.h"
#include "thimble/train/run_folder/train_summary.h"

namespace thimble {

std::string StepMetrics(const StepReport& report);
std::string RewiringMetrics(const RewiringReport& report, int64_t step);
std::string EpochMetrics(const EpochReport& report, int64_t step);
std::string SummaryJson(const TrainSummary& summary, const TrainConfig& config);

// Far more than SummaryJson writes.
inline constexpr int64_t kMaxSummaryBytes = 1 << 20;
// Reads the output of SummaryJson, without the configuration. The text is untrusted: kBadInput
// names the first wrong member and what was expected.
Result<TrainSummary> SummaryFromJson(std::string_view text);
// Reads a run's summary.json. Errors name the file.
Result<TrainSummary> ReadSummary(const std::string& path);

}  // namespace thimble
