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

// Smallest multiple of `alignment` (a power of two) that is >= size.
constexpr size_t RoundUp(size_t size, size_t alignment) {
  return (size + alignment - 1) & ~(alignment - 1);
}

// A count with an optional unit: k, M, G (10^3, 10^6, 10^9) with or without B; Ki, Mi, Gi with or
// without B (2^10, 2^20, 2^30); B. "1.5MB" is allowed where it gives a whole number of bytes.
Result<int64_t> ParseByteSize(std::string_view text);

// "398.12 MB", "12.3 kB", "17 B": decimal units, the ones all tables use.
std::string FormatBytes(int64_t bytes);

}  // namespace thimble
