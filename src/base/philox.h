// Counter-based random numbers (Philox4x32-10): the number is a pure function of key and counter,
// so every draw can be repeated from (seed, purpose, step, sample, element) and none is ever
// stored.
#pragma once

#include <array>
#include <cstdint>

namespace thimble {

// What the numbers are for; part of the key, so that two purposes never share a draw.
enum class RandomPurpose : uint32_t {
  kInit = 1,
  kShuffle = 2,
  kAugment = 3,
  kShapes = 4,
  kSplit = 5,
  kTest = 6,
};

// Four uniform 32-bit words for one (key, counter).
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 2> key, std::array<uint32_t, 4> counter);

// The numbers of one seed and purpose. A value type: copying it copies nothing but the key.
class RandomSource {
 public:
  RandomSource(uint64_t seed, RandomPurpose purpose);

  // `step` is 32 bits, `sample` (index in the data set, or tensor) 32 bits, `element` 64 bits.
  std::array<uint32_t, 4> Words(uint32_t step, uint32_t sample, uint64_t element) const;

 private:
  std::array<uint32_t, 2> key_;
};

// In [0, 1): 24 random bits, so every value is exact in a float.
inline float UniformFloat(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24F; }

// In [0, bound) without modulo bias worth mentioning (multiply-shift; bias <= bound / 2^32).
inline uint32_t UniformBelow(uint32_t word, uint32_t bound) {
  return static_cast<uint32_t>((static_cast<uint64_t>(word) * bound) >> 32);
}

// A standard normal draw from two words (Box-Muller).
float NormalFloat(uint32_t word_a, uint32_t word_b);

}  // namespace thimble
