// Which elements dropout drops: a pure function of (seed, stream, epoch, sample, element), so that
// any part can be recomputed, and the result is the same for any number of threads, any microbatch
// size and after a resume. constexpr, so that CPU and GPU share it.
#pragma once

#include <array>
#include <cstdint>

#include "thimble/base/philox.h"

namespace thimble {

// One call of Philox gives one word for each of this many elements.
inline constexpr int64_t kElementsPerDraw = 4;
// The draws of one sample are counted in 32 bits.
inline constexpr int64_t kMaxDropoutElements = kElementsPerDraw << 32;

// One dropout layer of a network. `stream` identifies the layer, so that no two drop the same
// elements.
struct DropoutDraw {
  RandomSource source;
  uint32_t stream;
  uint32_t threshold;  // a word below it drops its element
  float scale;         // factor of the elements kept

  // Requires 0 <= rate < 1.
  constexpr DropoutDraw(uint64_t seed, uint32_t the_stream, double rate)
      : source(seed, RandomPurpose::kDropout),
        stream(the_stream),
        threshold(Threshold(rate)),
        scale(static_cast<float>(1.0 / (1.0 - rate))) {}

  // For the elements from 4 * `index` of a sample (its index in the data set) in `epoch`.
  constexpr std::array<uint32_t, 4> Words(uint32_t epoch, uint32_t sample, uint32_t index) const {
    return source.Words(epoch, sample, uint64_t{stream} << 32 | index);
  }
  constexpr bool Keeps(uint32_t word) const { return word >= threshold; }

 private:
  static constexpr uint32_t Threshold(double rate) {
    constexpr double kMost = 0xFFFFFFFF;  // for rates that round to 1
    const double words = rate * 0x1p32 + 0.5;
    return static_cast<uint32_t>(words < kMost ? words : kMost);
  }
};

}  // namespace thimble
