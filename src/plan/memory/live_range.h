// LiveRange: the steps during which memory must not be reused, half-open [first, end).
#pragma once

#include <cstddef>

namespace thimble {

struct LiveRange {
  size_t first = 0;
  size_t end = 0;

  bool Contains(size_t step) const { return first <= step && step < end; }
  bool Overlaps(LiveRange other) const { return first < other.end && other.first < end; }
  friend bool operator==(LiveRange, LiveRange) = default;
};

}  // namespace thimble
