#include "thimble/base/crc64.h"

#include <array>
#include <bit>
#include <cstring>

namespace thimble {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read in memory byte order");

constexpr uint64_t kPolynomial = 0xC96C5795D7870F42;  // ECMA-182, lowest bit first

// tables[k][b]: the contribution of byte b to the checksum when k more bytes follow. Eight bytes
// then take eight independent lookups instead of a chain of them.
using Tables = std::array<std::array<uint64_t, 256>, 8>;

constexpr Tables MakeTables() {
  Tables tables{};
  for (uint64_t byte = 0; byte < 256; ++byte) {
    uint64_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = value;
  }
  for (size_t k = 1; k < tables.size(); ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint64_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

}  // namespace

void Crc64::Append(std::span<const std::byte> bytes) {
  uint64_t state = state_;
  const std::byte* next = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, next += 8) {
    uint64_t word;
    std::memcpy(&word, next, sizeof(word));
    word ^= state;
    state = 0;
    for (size_t k = 0; k < 8; ++k) state ^= kTables[7 - k][(word >> (8 * k)) & 0xFF];
  }
  for (; left > 0; --left, ++next) {
    state = (state >> 8) ^ kTables[0][(state ^ std::to_integer<uint64_t>(*next)) & 0xFF];
  }
  state_ = state;
}

}  // namespace thimble
