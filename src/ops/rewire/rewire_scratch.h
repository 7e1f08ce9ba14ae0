// The scratch of rewiring on any device: a table of tensors, then the new numbers of one pool at a
// time, then the new pattern, whose last word is always written.
#pragma once

#include <cstddef>
#include <cstdint>

#include "thimble/ops/rewire/rewire_rule.h"

namespace thimble {

// Offsets in bytes.
struct RewireScratch {
  size_t pool_begin = 0;
  size_t pattern_begin = 0;
  size_t end = 0;
};

// `pool_bytes` are those of the largest pool.
constexpr RewireScratch PlanRewireScratch(size_t num_tensors, size_t pool_bytes,
                                          size_t pattern_words) {
  constexpr size_t kAlignment = 64;
  const auto aligned = [](size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  };
  RewireScratch plan;
  plan.pool_begin = aligned(num_tensors * sizeof(RewireTensor));
  plan.pattern_begin = aligned(plan.pool_begin + pool_bytes);
  plan.end = plan.pattern_begin + pattern_words * sizeof(uint32_t);
  return plan;
}

}  // namespace thimble
