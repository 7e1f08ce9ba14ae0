// What the loss of a token compares its probabilities with: 1 - smoothing at the target, and
// smoothing / V in addition at each of the V words.
#pragma once

#include <cstdint>

#include "thimble/graph/attributes.h"

namespace thimble {

struct SmoothedTargets {
  SmoothedTargets(const Attributes& attributes, int64_t vocabulary)
      : words(vocabulary),
        padding(attributes.Int("padding")),
        smoothing(attributes.Float("smoothing")) {}

  // Whether a token counts.
  bool Counts(int32_t target) const { return padding < 0 || target != padding; }
  bool InRange(int32_t target) const { return target >= 0 && target < words; }
  double at_target() const { return 1 - smoothing; }
  double everywhere() const { return smoothing / static_cast<double>(words); }

  int64_t words;
  int64_t padding;
  double smoothing;
};

}  // namespace thimble
