// A seeded permutation of [0, n) that is computed, not stored: shuffling a data set of any size
// costs no memory, and any position of any epoch can be computed by itself.
//
// A Feistel network over a grid of about sqrt(n) by sqrt(n) cells permutes slightly more than n
// numbers; applying it again to results outside [0, n) restricts it to [0, n) (cycle walking, Black
// and Rogaway, 2002).
#pragma once

#include <cstdint>

#include "thimble/base/philox.h"

namespace thimble {

// The element at `position` of the permutation that belongs to `source` and `epoch`. Requires
// 1 <= n < 2^32 and 0 <= position < n. A bijection of [0, n) for every source and epoch.
int64_t PermuteIndex(const RandomSource& source, uint32_t epoch, int64_t n, int64_t position);

}  // namespace thimble
