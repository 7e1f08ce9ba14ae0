// A mutator that sometimes restarts from a file that this program writes, so that inputs stay
// current when a format changes. After most mutations it also corrects the file's checksum, because
// a correct checksum is no reason to trust the content.
//
// Included by one source per target, which must define FreshInput in namespace thimble.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

extern "C" size_t LLVMFuzzerMutate(uint8_t* bytes, size_t size, size_t max_size);

namespace thimble {

// An input that the reader must accept.
std::string FreshInput();

// CRC-64 as in xz, bit by bit; independent of the library's implementation, so that it also checks
// that one.
inline uint64_t PlainCrc64(std::string_view bytes) {
  constexpr uint64_t kPolynomial = 0xc96c5795d7870f42;
  uint64_t state = ~uint64_t{0};
  for (const char c : bytes) {
    state ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ (state % 2 == 1 ? kPolynomial : 0);
  }
  return ~state;
}

// The bytes with the right checksum in their seal ("crc64:" and 16 digits; it is over all bytes,
// with zeros for the digits), or unchanged if they have none.
inline std::string Resealed(std::string bytes) {
  constexpr std::string_view kMark = "crc64:";
  constexpr std::string_view kInMetadata = "\"thimble.checksum\":\"";  // of safetensors files
  constexpr size_t kDigits = 16;
  const size_t member = bytes.find(kInMetadata);
  const size_t mark = member == std::string::npos ? bytes.rfind(kMark) : bytes.find(kMark, member);
  if (mark == std::string::npos || bytes.size() - mark < kMark.size() + kDigits) return bytes;
  bytes.replace(mark + kMark.size(), kDigits, kDigits, '0');
  char digits[kDigits + 1];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(PlainCrc64(bytes)));
  return bytes.replace(mark + kMark.size(), kDigits, digits);
}

}  // namespace thimble

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* bytes, size_t size, size_t max_size,
                                          unsigned int seed) {
  constexpr unsigned kFreshEvery = 1024;
  constexpr unsigned kUnsealedEvery = 8;
  std::string input;
  if (seed % kFreshEvery == 0) {
    input = thimble::FreshInput();
  } else {
    size = LLVMFuzzerMutate(bytes, size, max_size);
    input.assign(reinterpret_cast<const char*>(bytes), size);
  }
  if (seed % kUnsealedEvery != 1) input = thimble::Resealed(std::move(input));
  size = std::min(input.size(), max_size);
  std::copy_n(input.begin(), size, bytes);
  return size;
}
