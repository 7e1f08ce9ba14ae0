// The other innermost product: sums of outer products, for operands whose long axis is the summed
// one. Both are read in place, neither packed nor transposed. Compiled per SIMD target.
#pragma once

#include <cstddef>

namespace thimble {

// The largest operands; sums are sized for them, so that a plan does not depend on the target.
inline constexpr size_t kMaxOuterRows = 14;
inline constexpr size_t kMaxOuterColumns = 32;
// Columns are computed in whole vectors of at most this many lanes.
inline constexpr size_t kMaxLanes = 16;

// sums (rows, columns) += over all segments s and k < depth:
//   a[s][a_offset + k * a_step + row] * b[s][b_offset + k * b_step + column]
// as chains from zero, one for each element, over the segments and k in order.
struct OuterProduct {
  const float* const* a = nullptr;  // [segments]
  const float* const* b = nullptr;  // [segments]
  ptrdiff_t a_offset = 0;
  ptrdiff_t b_offset = 0;
  size_t a_step = 0;
  size_t b_step = 0;
  size_t segments = 0;
  size_t depth = 0;
  size_t rows = 0;
  size_t columns = 0;     // rounded up to whole vectors; this many floats of b are read
  float* sums = nullptr;  // and this many added to each row of sums
  size_t sums_stride = 0;
  // Whether a and b consist of pairs of bf16 numbers (pairs.h), whose two products are added.
  // Requires MultipliesPairs().
  bool pairs = false;
};

// Requires 1 <= rows <= kMaxOuterRows.
void AddOuterProducts(const OuterProduct& product);

}  // namespace thimble
