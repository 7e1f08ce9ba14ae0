// Rest: the number of steps between the last use of a byte by one interval and its first use by the
// next. Where it is short, the next one has to wait. Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "thimble/plan/memory/place_intervals.h"

namespace thimble {

// Moves intervals, one at a time, to bytes that rest for `rest_steps` before and after, or for as
// long as possible. `offsets` must be a valid placement; the result is one too, with a peak that is
// no higher.
std::vector<size_t> MoveApart(std::span<const Interval> intervals, std::vector<size_t> offsets,
                              size_t alignment, size_t rest_steps);

// Steps of rest that are missing, over all pairs of intervals that share a byte.
size_t MissingRest(std::span<const Interval> intervals, std::span<const size_t> offsets,
                   size_t rest_steps);

}  // namespace thimble
