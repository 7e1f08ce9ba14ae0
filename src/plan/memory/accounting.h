// Accounting: who owns the bytes of the arena at each step of a plan. Every report uses these
// numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "thimble/plan/plan.h"

namespace thimble {

// Bytes of the arena that hold one thing for some steps: a value, the scratch of a step, or a
// resident. A buffer that holds several values in turn is one holding for each, one after the
// other.
struct Holding {
  static constexpr int64_t kNoBuffer = -1;

  std::string name;   // of the value or the resident, or "scratch of …"
  std::string layer;  // that it belongs to; empty for batches and what no node of the graph uses
  std::string phase;  // in which it is made; empty for what is there before the step
  std::string shape;  // "(100, 32, 32, 16) f32"; empty for scratch and the prefetch ring
  Category category = Category::kTransient;
  int64_t buffer = kNoBuffer;  // of the plan; the prefetch ring and others' residents have none
  size_t offset = 0;
  size_t size_bytes = 0;
  LiveRange live;
  bool resident = false;
  friend bool operator==(const Holding&, const Holding&) = default;
};

// Everything that the arena holds while a plan runs: residents first, then by buffer and time. At
// each step no byte is in two of them.
std::vector<Holding> Holdings(const Plan& plan);

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

MemoryAccount Account(std::span<const Holding> holdings, size_t num_steps, size_t arena_bytes);
MemoryAccount Account(const Plan& plan);

// The largest things held at a step, largest first.
std::vector<Holding> LargestAt(std::span<const Holding> holdings, size_t step, size_t count);

}  // namespace thimble
