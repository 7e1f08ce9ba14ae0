// Feeds arbitrary text to the reader of a run's progress, which checkpoints store as JSON.
#include <cstddef>
#include <cstdint>
#include <string>

#include "fuzz/check_error.h"
#include "fuzz/fresh_input.h"
#include "fuzz/scratch_folder.h"
#include "thimble/train/run_folder/run_state.h"

namespace thimble {
namespace {

void ReadTwice(const std::string& text) {
  const Result<RunState> state = RunStateFromJson(text);
  if (!state.ok()) return CheckError(state.error(), "progress");
  for (const int64_t count :
       {state->step, state->correct, state->samples, state->best_epoch, state->metrics_bytes}) {
    THIMBLE_CHECK(count >= 0, "negative count {}", count);
  }
  const Result<RunState> again = RunStateFromJson(ToJson(*state));
  THIMBLE_CHECK(again.ok() && *again == *state, "not the same when written and read again");
}

}  // namespace

std::string FreshInput() { return ToJson(RunState{.step = 4, .loss_sum = 2.5, .samples = 10}); }

}  // namespace thimble

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  thimble::ReadTwice(std::string(thimble::AsText(bytes, size)));
  return 0;
}
