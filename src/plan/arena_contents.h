// ArenaContents: which value each byte of an arena holds, as the plan verifier plays the steps.
//
// Writing a range replaces whatever any part of it held. A question about a range answers with the
// first bytes that are not as wished, who wrote them and when. Knows nothing of buffers, ops or
// live ranges.
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

  // What some bytes hold and since which step.
  struct Holding {
    ValueId value;  // none: scratch, whose bytes nobody may read later
    size_t step = kBeforeSteps;
    friend bool operator==(Holding, Holding) = default;
  };

  struct Finding {
    ByteRange range;
    std::optional<Holding> holding;  // none: nothing was ever written there
  };

  void Write(ByteRange range, Holding holding);

  // The lowest part of the range that does not hold this value; none where it lies there whole.
  std::optional<Finding> FirstOther(ByteRange range, ValueId value) const;
  // The lowest part of the range that holds anything.
  std::optional<Finding> FirstHeld(ByteRange range) const;

 private:
  struct Segment {
    size_t end = 0;
    Holding holding;
  };
  using Segments = std::map<size_t, Segment>;

  // Makes `offset` the beginning of a segment where it lies inside one.
  void SplitAt(size_t offset);
  // The first segment that ends behind the offset.
  Segments::const_iterator FirstBehind(size_t offset) const;

  Segments segments_;  // by begin; they never overlap
};

}  // namespace thimble
