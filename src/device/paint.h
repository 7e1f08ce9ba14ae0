// The pattern of memory that nobody owns; see exec/memory_audit.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thimble {

// A signalling NaN with a payload of its own: arithmetic yields quiet NaNs, labels and pixels four
// in a row do not spell it.
inline constexpr uint32_t kPaint = 0x7FA5C35A;
inline constexpr size_t kPaintBytes = sizeof(kPaint);

}  // namespace thimble
