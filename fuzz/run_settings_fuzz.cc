// Feeds arbitrary text to the reader of a run's settings, which checkpoints store as JSON.
#include <cstddef>
#include <cstdint>
#include <string>

#include "fuzz/check_error.h"
#include "fuzz/fresh_input.h"
#include "fuzz/scratch_folder.h"
#include "thimble/train/run_folder/run_settings.h"

namespace thimble {
namespace {

void ReadTwice(const std::string& text) {
  const Result<RunSettings> settings = SettingsFromJson(text);
  if (!settings.ok()) return CheckError(settings.error(), "");
  const Result<RunSettings> again = SettingsFromJson(ToJson(*settings));
  THIMBLE_CHECK(again.ok() && *again == *settings, "not the same when written and read again");
  THIMBLE_CHECK(CheckSameSettings(*settings, *again, false).ok(),
                "settings differ from themselves");
}

}  // namespace

std::string FreshInput() {
  return ToJson(RunSettings{{{"batch", "10"}, {"model", "wrn-10-1"}}, 40});
}

}  // namespace thimble

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  thimble::ReadTwice(std::string(thimble::AsText(bytes, size)));
  return 0;
}
