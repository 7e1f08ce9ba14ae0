// Rest: steps between the last use of a byte by one interval and its first use by another. Where it
// is short, the other has to wait for the one. A pure function.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "thimble/plan/memory/place_intervals.h"

namespace thimble {

// Moves intervals, one after the other, to where bytes have had and will have `rest_steps` of rest,
// or as much as there is to be had; the others stay where they are meanwhile. `offsets` are a valid
// placement, and so is what is returned, with a peak that is no higher.
std::vector<size_t> MoveApart(std::span<const Interval> intervals, std::vector<size_t> offsets,
                              size_t alignment, size_t rest_steps);

// Steps of rest that are missing, over all pairs of intervals that share a byte.
size_t MissingRest(std::span<const Interval> intervals, std::span<const size_t> offsets,
                   size_t rest_steps);

}  // namespace thimble
