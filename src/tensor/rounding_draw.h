// RoundingDraw: the random numbers of stochastic rounding: which words round which elements. CPU
// and GPU draw the same ones; GPU code includes this header.
#pragma once

#include <cstdint>

#include "thimble/base/philox.h"

namespace thimble {

// A word has 32 bits for one element: the upper 16 for the first output of an op, the lower 16 for
// the second. The next two outputs have the words of the next occasion.
struct RoundingDraw {
  RandomSource source{0, RandomPurpose::kRounding};
  uint32_t tensor = 0;
  uint32_t update = 0;
  // Tells several roundings of one update apart: that of each part of the batch, and the last.
  uint32_t occasion = 0;

  static constexpr uint32_t kElementsPerDraw = 4;
  // The counter of the elements from 4 * `draw` on.
  constexpr std::array<uint32_t, 4> Counter(uint32_t draw) const {
    return {draw, tensor, occasion, update};
  }
  constexpr std::array<uint32_t, 4> Words(uint32_t draw) const {
    return Philox4x32(source.key(), Counter(draw));
  }
  constexpr RoundingDraw ForOutput(int output) const {
    RoundingDraw draw = *this;
    draw.occasion += static_cast<uint32_t>(output / 2);
    return draw;
  }
  static constexpr int ShiftOf(int output) { return output % 2 == 0 ? 16 : 0; }
};

}  // namespace thimble
