// Byte counts: checked arithmetic, parsing of "8MB", printing for people. MB = 10^6, MiB = 2^20.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "thimble/base/result.h"

namespace thimble {

// nullopt on overflow. Sizes that come from outside go through these.
std::optional<int64_t> CheckedMultiply(int64_t a, int64_t b);
std::optional<int64_t> CheckedAdd(int64_t a, int64_t b);

// The smallest multiple of `multiple` that is not below `size`.
constexpr size_t RoundUp(size_t size, size_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

// A size as people write it: NUMBER [one blank] [UNIT]. NUMBER: digits, with a unit also a decimal
// fraction. UNIT, in any case: B; k, M, G, T (1000, 1000^2, …) with or without B; Ki, Mi, Gi, Ti
// (1024, 1024^2, …) with or without B. Rounded down to whole bytes; at most 8192TiB. What is not
// nothing but less than a byte is refused.
Result<int64_t> ParseByteSize(std::string_view text);

// "398.12 MB", "12.30 kB", "17 B", "35.187 TB": decimal units, the ones all tables use.
std::string FormatBytes(int64_t bytes);

}  // namespace thimble
