// Feeds arbitrary text to the reader of summary.json.
#include <cstddef>
#include <cstdint>

#include "fuzz/check_error.h"
#include "fuzz/fresh_input.h"
#include "fuzz/scratch_folder.h"
#include "thimble/train/run_folder/metrics.h"

namespace thimble {
namespace {

void ReadTwice(std::string_view text) {
  const Result<TrainSummary> summary = SummaryFromJson(text);
  if (!summary.ok()) return CheckError(summary.error(), "");
  THIMBLE_CHECK(summary->steps >= 0 && summary->parameters >= 0, "a negative count");
  const std::string written = SummaryJson(*summary, TrainConfig{});
  const Result<TrainSummary> again = SummaryFromJson(written);
  THIMBLE_CHECK(again.ok(), "{}", again.error().message);
  THIMBLE_CHECK(SummaryJson(*again, TrainConfig{}) == written, "changed when read again");
}

}  // namespace

std::string FreshInput() { return SummaryJson(TrainSummary{}, TrainConfig{}); }

}  // namespace thimble

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  thimble::ReadTwice(thimble::AsText(bytes, size));
  return 0;
}
