// The other innermost product: sums of outer products, for operands whose long axis is the one that
// is summed over. Both are read where they lie: neither is packed nor transposed. Compiled per SIMD
// target.
#pragma once

#include <cstddef>

namespace thimble {

// The largest operands; sums are sized for them, so that a plan does not depend on the target.
inline constexpr size_t kMaxOuterRows = 14;
inline constexpr size_t kMaxOuterColumns = 32;
// Columns are computed in multiples of a vector, at most so many.
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
  size_t columns = 0;     // rounded up to whole vectors: so many floats of b are read
  float* sums = nullptr;  // and so many of each row of sums added to
  size_t sums_stride = 0;
};

// Requires 1 <= rows <= kMaxOuterRows.
void AddOuterProducts(const OuterProduct& product);

}  // namespace thimble
