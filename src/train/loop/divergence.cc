#include "thimble/train/loop/divergence.h"

#include <fmt/format.h>

namespace thimble {

std::string DescribeDivergence(const std::string& what, int64_t checkpoint_step) {
  const std::string kept =
      checkpoint_step < 0
          ? "there was no checkpoint yet"
          : fmt::format("the last good checkpoint, of step {}, is kept", checkpoint_step);
  return fmt::format(
      "{}: training has diverged; {}; start again with a lower --lr or a --warmup, in another "
      "--out or with --overwrite",
      what, kept);
}

}  // namespace thimble
