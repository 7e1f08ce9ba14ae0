#include "thimble/base/philox.h"

#include <cmath>

namespace thimble {

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 2> key, std::array<uint32_t, 4> counter) {
  // Multipliers and key increments of the published generator (Salmon et al., 2011).
  constexpr uint64_t kMultiplier0 = 0xD2511F53;
  constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kIncrement0 = 0x9E3779B9;
  constexpr uint32_t kIncrement1 = 0xBB67AE85;
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += kIncrement0;
    key[1] += kIncrement1;
  }
  return counter;
}

RandomSource::RandomSource(uint64_t seed, RandomPurpose purpose) {
  // One Philox call mixes seed and purpose into the key, so that neighbouring seeds share nothing.
  const auto mixed = Philox4x32({static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
                                {static_cast<uint32_t>(purpose), 0, 0, 0});
  key_ = {mixed[0], mixed[1]};
}

std::array<uint32_t, 4> RandomSource::Words(uint32_t step, uint32_t sample,
                                            uint64_t element) const {
  return Philox4x32(
      key_, {static_cast<uint32_t>(element), static_cast<uint32_t>(element >> 32), sample, step});
}

float NormalFloat(uint32_t word_a, uint32_t word_b) {
  // 1 - u lies in (0, 1], so the logarithm is finite.
  const double u = 1.0 - static_cast<double>(UniformFloat(word_a));
  const double angle = 6.283185307179586 * static_cast<double>(UniformFloat(word_b));
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(angle));
}

}  // namespace thimble
