// Accounting: what the bytes of the arena are used for at each step of a plan. Every report uses
// these numbers.
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
// resident. A buffer that holds several values in turn has one holding for each.
struct Holding {
  static constexpr int64_t kNoBuffer = -1;

  std::string name;   // of the value or the resident, or "scratch of …"
  std::string layer;  // it belongs to; empty for batches and for what no node of the graph uses
  std::string phase;  // that makes it; empty if it exists before the step
  std::string shape;  // "(100, 32, 32, 16) f32"; empty for scratch and the prefetch ring
  Category category = Category::kTransient;
  int64_t buffer = kNoBuffer;  // of the plan; none for the ring and residents of other plans
  size_t offset = 0;
  size_t size_bytes = 0;
  LiveRange live;
  bool resident = false;
  friend bool operator==(const Holding&, const Holding&) = default;
};

// All holdings of a plan: residents first, then by buffer and time. At each step no byte belongs to
// two of them.
std::vector<Holding> Holdings(const Plan& plan);

using CategoryBytes = std::array<size_t, kNumCategories>;

inline size_t Total(const CategoryBytes& bytes) {
  size_t total = 0;
  for (size_t part : bytes) total += part;
  return total;
}

struct MemoryAccount {
  std::vector<CategoryBytes> at_step;  // bytes alive, by step
  size_t peak_step = 0;                // the first step with the most bytes
  CategoryBytes at_peak{};
  size_t gap_bytes = 0;   // arena - live bytes at the peak
  size_t kept_bytes = 0;  // largest sum of model, gradients, optimizer and activations at any step
};

MemoryAccount Account(std::span<const Holding> holdings, size_t num_steps, size_t arena_bytes);
MemoryAccount Account(const Plan& plan);

// The `count` largest holdings at a step, largest first.
std::vector<Holding> LargestAt(std::span<const Holding> holdings, size_t step, size_t count);

}  // namespace thimble
