// How updates round results that are stored in fewer than 32 bits: to the nearest, or at random
// (RoundingDraw), as the attributes `stochastic`, `seed` and `stream` of a node say
// (AddRoundingAttributes in shape_rules.h).
//
// GPU code includes this header.
#pragma once

#include "thimble/graph/attributes.h"
#include "thimble/tensor/rounding_draw.h"

namespace thimble {

// Whether results that are stored in fewer than 32 bits are rounded at random.
inline bool RoundsAtRandom(const Attributes& attributes) {
  return attributes.Int("stochastic") != 0;
}
// The draws of a node; `update` and `occasion` are data.
inline RoundingDraw DrawOf(const Attributes& attributes) {
  const auto seed = static_cast<uint64_t>(attributes.Int("seed"));
  return {.source = RandomSource(seed, RandomPurpose::kRounding),
          .tensor = static_cast<uint32_t>(attributes.Int("stream"))};
}

}  // namespace thimble
