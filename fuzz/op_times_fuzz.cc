// Feeds arbitrary text to the reader of measured times. Accepted texts are written and read again,
// and every kind of call can be predicted.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "fuzz/check_error.h"
#include "fuzz/fresh_input.h"
#include "fuzz/scratch_folder.h"
#include "thimble/train/step_time/op_times_file.h"

namespace thimble {
namespace {

void ReadTwice(std::string_view text) {
  const auto file = ParseOpTimes(text);
  if (!file.ok()) return CheckError(file.error(), "line ");
  const std::string written = ToText(*file);
  const auto again = ParseOpTimes(written);
  THIMBLE_CHECK(again.ok(), "{}", again.error().message);
  THIMBLE_CHECK(ToText(*again) == written, "writing it again changes it");
  for (const auto& [kind, samples] : file->times.samples()) {
    for (const NodeCost cost : {NodeCost{0, 0}, samples.front().cost}) {
      const double seconds = file->times.Seconds(kind, cost);
      THIMBLE_CHECK(std::isfinite(seconds) && seconds >= 0, "'{}' takes {} s", kind, seconds);
    }
  }
}

}  // namespace

std::string FreshInput() {
  return ToText({"0.1.0 cpu", OpTimes({{"add AddCpu ff>f", {{{10, 20}, 1e-6}}}}, 2)});
}

}  // namespace thimble

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  thimble::ReadTwice(thimble::AsText(bytes, size));
  return 0;
}
