// Rest: the number of steps between the last use of a byte by one interval and its first use by the
// next. If it is short, the step that uses the next interval has to wait. Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "thimble/plan/memory/place_intervals.h"

namespace thimble {

// Moves intervals, one at a time, to bytes that are unused for `rest_steps` before and after, or
// for as long as possible. `offsets` must be a valid placement; so is the result, whose peak is not
// higher.
std::vector<size_t> MoveApart(std::span<const Interval> intervals, std::vector<size_t> offsets,
                              size_t alignment, size_t rest_steps);

// Missing steps of rest, summed over all pairs of intervals that share a byte.
size_t MissingRest(std::span<const Interval> intervals, std::span<const size_t> offsets,
                   size_t rest_steps);

}  // namespace thimble
