// Counter-based random numbers (Philox4x32-10): each number is a pure function of key and counter,
// so every draw can be recomputed from (seed, purpose, step, sample, element) and none is stored.
// constexpr, so that CPU and GPU run the same code.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace thimble {

// The purpose of the numbers; part of the key, so that two purposes never share a draw.
enum class RandomPurpose : uint32_t {
  kInit = 1,
  kShuffle = 2,
  kAugment = 3,
  kShapes = 4,
  kSplit = 5,
  kTest = 6,
  kDropout = 7,
  kRounding = 8,
  kPattern = 9,
  kRewire = 10,
  kNumbers = 11,
  kTokenBatches = 12,
  kSentences = 13,
};

// Multipliers, key increments and rounds of the published generator (Salmon et al., 2011).
inline constexpr uint64_t kPhiloxMultiplier0 = 0xD2511F53;
inline constexpr uint64_t kPhiloxMultiplier1 = 0xCD9E8D57;
inline constexpr uint32_t kPhiloxIncrement0 = 0x9E3779B9;
inline constexpr uint32_t kPhiloxIncrement1 = 0xBB67AE85;
inline constexpr int kPhiloxRounds = 10;

// Four uniform 32-bit words for one (key, counter).
using PhiloxWords = std::array<uint32_t, 4>;

// For several counters; the keys of the rounds, which they share, are computed once.
template <size_t kCounters>
constexpr std::array<PhiloxWords, kCounters> Philox4x32(
    std::array<uint32_t, 2> key, std::array<PhiloxWords, kCounters> counters) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    for (PhiloxWords& counter : counters) {
      const uint64_t product0 = kPhiloxMultiplier0 * counter[0];
      const uint64_t product1 = kPhiloxMultiplier1 * counter[2];
      counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
                 static_cast<uint32_t>(product1),
                 static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
                 static_cast<uint32_t>(product0)};
    }
    key[0] += kPhiloxIncrement0;
    key[1] += kPhiloxIncrement1;
  }
  return counters;
}
constexpr PhiloxWords Philox4x32(std::array<uint32_t, 2> key, PhiloxWords counter) {
  return Philox4x32<1>(key, {counter})[0];
}

// The numbers of one seed and purpose. A value type that holds only the key.
class RandomSource {
 public:
  constexpr RandomSource(uint64_t seed, RandomPurpose purpose) {
    // One Philox call mixes seed and purpose into the key, so that neighbouring seeds give
    // unrelated numbers.
    const auto mixed = Philox4x32({static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
                                  {static_cast<uint32_t>(purpose), 0, 0, 0});
    key_ = {mixed[0], mixed[1]};
  }

  // `step` is 32 bits, `sample` (index in the data set, or tensor) 32 bits, `element` 64 bits.
  constexpr std::array<uint32_t, 4> Words(uint32_t step, uint32_t sample, uint64_t element) const {
    return Philox4x32(
        key_, {static_cast<uint32_t>(element), static_cast<uint32_t>(element >> 32), sample, step});
  }
  constexpr std::array<uint32_t, 2> key() const { return key_; }

 private:
  std::array<uint32_t, 2> key_ = {};
};

// In [0, 1): 24 random bits, so every value is exact in a float.
constexpr float UniformFloat(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24F; }

// In [0, bound), by multiply-shift; the bias is at most bound / 2^32.
constexpr uint32_t UniformBelow(uint32_t word, uint32_t bound) {
  return static_cast<uint32_t>((static_cast<uint64_t>(word) * bound) >> 32);
}

// A standard normal draw from two words (Box-Muller).
float NormalFloat(uint32_t word_a, uint32_t word_b);

}  // namespace thimble
