// CRC-64 (the polynomial of ECMA-182, as xz uses it): tells damaged files from intact ones. Finds
// every error of up to 64 neighbouring bits, and any other but for one in 2^64. No protection
// against somebody who wants to deceive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace thimble {

// The checksum of a sequence of bytes, taken piece by piece.
class Crc64 {
 public:
  Crc64() = default;
  // Goes on where another one with this value() stopped.
  explicit Crc64(uint64_t value) : state_(~value) {}

  void Append(std::span<const std::byte> bytes);
  void Append(std::string_view text) { Append(std::as_bytes(std::span(text))); }
  // Of all bytes so far; 0 where there were none.
  uint64_t value() const { return ~state_; }

 private:
  uint64_t state_ = ~uint64_t{0};
};

}  // namespace thimble
