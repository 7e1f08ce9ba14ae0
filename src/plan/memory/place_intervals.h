// Offset placement: buffers with sizes and live ranges in, offsets out. A pure function.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "thimble/plan/memory/live_range.h"

namespace thimble {

struct Interval {
  size_t size_bytes = 0;
  LiveRange live;
  friend bool operator==(const Interval&, const Interval&) = default;
};

struct OffsetPlan {
  std::vector<size_t> offsets;   // by interval; multiples of the alignment
  size_t peak_bytes = 0;         // end of the highest interval, rounded up to the alignment
  size_t lower_bound_bytes = 0;  // see LowerBoundBytes
};

// Intervals and where PlaceIntervals put them: whoever comes to the same intervals again need not
// place them a second time.
struct PlacedIntervals {
  std::vector<Interval> intervals;
  OffsetPlan plan;
};

// The most bytes alive at any step: no placement can use less.
size_t LowerBoundBytes(std::span<const Interval> intervals);

// Places all intervals so that no two with overlapping live ranges share a byte. Tries several
// greedy orders and then, while the peak is above the lower bound, a bounded and deterministic
// local search. Intervals of size 0 get offset 0.
OffsetPlan PlaceIntervals(std::span<const Interval> intervals, size_t alignment);

// Every interval after the previous one, nothing shared: the memory needed without placement.
OffsetPlan PlaceWithoutSharing(std::span<const Interval> intervals, size_t alignment);

}  // namespace thimble
