// Byte counts: checked arithmetic, parsing of "8MB", printing for people. MB = 10^6, MiB = 2^20.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "thimble/base/result.h"

namespace thimble {

// nullopt on overflow. For sizes from files and options.
std::optional<int64_t> CheckedMultiply(int64_t a, int64_t b);
std::optional<int64_t> CheckedAdd(int64_t a, int64_t b);

// The smallest multiple of `multiple` that is at least `size`.
constexpr size_t RoundUp(size_t size, size_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

// Parses a size such as "1.5 GiB": NUMBER [one space] [UNIT]. NUMBER: digits; a decimal fraction is
// allowed with a unit. UNIT, in upper or lower case: B; k, M, G, T (1000, 1000^2, …) with or
// without B; Ki, Mi, Gi, Ti (1024, 1024^2, …) with or without B. Rounded down to whole bytes; at
// most 8192TiB. A nonzero size below one byte is an error.
Result<int64_t> ParseByteSize(std::string_view text);

// "398.12 MB", "12.30 kB", "17 B", "35.187 TB": decimal units, as in all tables.
std::string FormatBytes(int64_t bytes);

}  // namespace thimble
