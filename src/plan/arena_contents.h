// ArenaContents: which value each byte of an arena holds while the plan verifier simulates the
// steps.
//
// Writing a range replaces its previous contents. A query about a range returns the first bytes
// that violate the condition, what they hold and since when. Independent of buffers, ops and live
// ranges.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <optional>

#include "thimble/graph/graph.h"

namespace thimble {

// Bytes [begin, end) of the arena.
struct ByteRange {
  size_t begin = 0;
  size_t end = 0;

  bool empty() const { return begin >= end; }
  bool Overlaps(ByteRange other) const {
    return !empty() && !other.empty() && begin < other.end && other.begin < end;
  }
  friend bool operator==(ByteRange, ByteRange) = default;
};

class ArenaContents {
 public:
  static constexpr size_t kBeforeSteps = std::numeric_limits<size_t>::max();

  // The contents of some bytes and the step that wrote them.
  struct Holding {
    ValueId value;  // none: scratch, whose bytes may not be read later
    size_t step = kBeforeSteps;
    friend bool operator==(Holding, Holding) = default;
  };

  struct Finding {
    ByteRange range;
    std::optional<Holding> holding;  // none: nothing was ever written there
  };

  void Write(ByteRange range, Holding holding);

  // The lowest part of the range that does not hold this value; none if the whole range does.
  std::optional<Finding> FirstOther(ByteRange range, ValueId value) const;
  // The lowest part of the range that holds anything.
  std::optional<Finding> FirstHeld(ByteRange range) const;

 private:
  struct Segment {
    size_t end = 0;
    Holding holding;
  };
  using Segments = std::map<size_t, Segment>;

  // Splits the segment that contains `offset`, so that one begins there.
  void SplitAt(size_t offset);
  // The first segment that ends after the offset.
  Segments::const_iterator FirstBehind(size_t offset) const;

  Segments segments_;  // by begin; they never overlap
};

}  // namespace thimble
