// Drops elements of rows of floats that belong to one sample, for dropout itself and for ops that
// drop weights of their own. Compiled per SIMD target.
#pragma once

#include <cstddef>
#include <cstdint>

#include "thimble/ops/dropout/dropout_draw.h"

namespace thimble {

struct DroppedRows {
  uint32_t epoch = 0;
  uint32_t sample = 0;
  uint64_t first_element = 0;  // index of the first row's first element within the sample
  uint64_t row_elements = 0;   // from one row's first element to the next row's
  size_t rows = 1;
  size_t width = 0;
  size_t stride = 0;  // floats from one row to the next
};

// to = from / (1 - rate), or zero where the element is dropped; `to` may be `from`.
void DropRows(const DropoutDraw& draw, const DroppedRows& rows, const float* from, float* to);

}  // namespace thimble
