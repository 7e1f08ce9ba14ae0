// Accounting: who owns the bytes of the arena at each step of a plan. Every report uses these
// numbers.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "thimble/plan/plan.h"

namespace thimble {

using CategoryBytes = std::array<size_t, kNumCategories>;

inline size_t Total(const CategoryBytes& bytes) {
  size_t total = 0;
  for (size_t part : bytes) total += part;
  return total;
}

struct MemoryAccount {
  std::vector<CategoryBytes> at_step;  // bytes alive, by step
  size_t peak_step = 0;                // the fullest step (the first of them)
  CategoryBytes at_peak{};
  size_t gap_bytes = 0;   // arena - everything alive at the peak
  size_t kept_bytes = 0;  // model + gradients + optimizer + activations where their sum is largest
};

// A buffer that holds several values in turn counts as the youngest one alive.
MemoryAccount Account(const Plan& plan);

// The largest buffers alive at a step, largest first.
struct LiveBuffer {
  BufferId buffer;
  ValueId value;  // the value it holds then; none for scratch
  size_t size_bytes = 0;
};
std::vector<LiveBuffer> LargestAt(const Plan& plan, size_t step, size_t count);

}  // namespace thimble
