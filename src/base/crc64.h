// CRC-64 (the polynomial of ECMA-182, as xz uses it): detects damaged files. Finds every burst
// error of up to 64 bits; any other error goes unnoticed with probability 2^-64. No protection
// against deliberate changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace thimble {

// Computes the checksum of a byte sequence incrementally.
class Crc64 {
 public:
  Crc64() = default;
  // Continues from a checksum whose value() was `value`.
  explicit Crc64(uint64_t value) : state_(~value) {}

  void Append(std::span<const std::byte> bytes);
  void Append(std::string_view text) { Append(std::as_bytes(std::span(text))); }
  // The checksum of all bytes so far; 0 if there were none.
  uint64_t value() const { return ~state_; }

 private:
  uint64_t state_ = ~uint64_t{0};
};

}  // namespace thimble
