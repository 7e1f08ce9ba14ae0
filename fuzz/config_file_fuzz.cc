// Feeds arbitrary text to the reader of config files. Accepted files are written as in a run folder
// and read again: nothing may change.
#include <cstddef>
#include <cstdint>
#include <string>

#include "fuzz/check_error.h"
#include "fuzz/fresh_input.h"
#include "fuzz/scratch_folder.h"
#include "thimble/train/options/command_text.h"
#include "thimble/train/options/options.h"

namespace thimble {
namespace {

void CheckSame(const TrainConfig& config, const TrainConfig& again) {
  for (const Option& option : TrainOptions()) {
    THIMBLE_CHECK(option.get(config) == option.get(again), "--{} was '{}' and is now '{}'",
                  option.name, option.get(config), option.get(again));
  }
}

void ReadTwice(const ScratchFolder& folder, std::string_view text) {
  const std::string path = folder.Write("f.toml", text);
  TrainConfig config;
  if (const auto read = ReadConfigFile(path, config); !read.ok()) {
    return CheckError(read.error(), path);
  }
  if (!CheckConfig(config).ok()) return;
  THIMBLE_CHECK(CommandOf(config).starts_with("thimble train"), "no command");
  TrainConfig again;
  const auto read = ReadConfigFile(folder.Write("again.toml", ToToml(config)), again);
  THIMBLE_CHECK(read.ok(), "{}", read.error().message);
  CheckSame(config, again);
}

}  // namespace

std::string FreshInput() { return ToToml(TrainConfig{}); }

}  // namespace thimble

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const thimble::ScratchFolder folder;
  thimble::ReadTwice(folder, thimble::AsText(bytes, size));
  return 0;
}
