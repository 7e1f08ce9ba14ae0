// The random draws of rewiring: pure functions of (seed, update, position), so that every device
// and any number of threads draw the same ones. constexpr: CPU and GPU share them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "thimble/base/philox.h"

namespace thimble {

struct RewireDraw {
  RandomSource source;
  uint32_t update = 0;

  static constexpr int64_t kKeysPerDraw = 4;
  // Positions count from the beginning of the pattern. One draw has the keys of four of them, from
  // 4 * `draw` on; the positions with the smallest keys grow.
  constexpr std::array<uint32_t, 4> KeyCounter(uint32_t draw) const {
    return {draw, 0, kKeys, update};
  }
  constexpr uint32_t KeyOf(int64_t position) const {
    const auto words =
        Philox4x32(source.key(), KeyCounter(static_cast<uint32_t>(position / kKeysPerDraw)));
    return words[static_cast<size_t>(position % kKeysPerDraw)];
  }
  // One of `count` tensors with room, which gets what rounding leaves of this round of shares.
  constexpr int64_t ChooseTensor(uint32_t round, int64_t count) const {
    const auto words = source.Words(update, kTensors, round);
    return UniformBelow(words[0], static_cast<uint32_t>(count));
  }

 private:
  // Tell both kinds of draws apart.
  static constexpr uint32_t kKeys = 0;
  static constexpr uint32_t kTensors = 1;
};

constexpr RewireDraw MakeRewireDraw(int64_t seed, int32_t update) {
  return {RandomSource(static_cast<uint64_t>(seed), RandomPurpose::kRewire),
          static_cast<uint32_t>(update)};
}

}  // namespace thimble
