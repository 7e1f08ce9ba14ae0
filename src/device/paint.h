// The pattern for memory outside live buffers; see exec/memory_audit.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thimble {

// A signalling NaN with a unique payload: arithmetic yields quiet NaNs, and labels or four pixels
// in a row do not produce it.
inline constexpr uint32_t kPaint = 0x7FA5C35A;
inline constexpr size_t kPaintBytes = sizeof(kPaint);

}  // namespace thimble
