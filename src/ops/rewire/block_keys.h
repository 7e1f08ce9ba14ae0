// The random keys of rewiring, for a block of positions at a time.
#pragma once

#include <cstdint>

#include "thimble/ops/rewire/rewire_draw.h"
#include "thimble/tensor/packed.h"
#include "thimble/tensor/smallest_keys.h"

namespace thimble {

struct BlockKeys {
  alignas(64) uint32_t keys[kPatternBlock];  // of each position
  uint32_t in_range[kPatternBlockWords];     // a bit for each that says whether it is in a range
};

void DrawBlockKeys(const RewireDraw& draw, int64_t block, KeyRange range, BlockKeys& keys);

}  // namespace thimble
