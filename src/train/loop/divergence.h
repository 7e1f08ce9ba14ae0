// The message of a run whose numbers are no longer finite.
#pragma once

#include <cstdint>
#include <string>

namespace thimble {

// `what` was found; `checkpoint_step` is the step of the last good checkpoint, or negative.
std::string DescribeDivergence(const std::string& what, int64_t checkpoint_step);

}  // namespace thimble
