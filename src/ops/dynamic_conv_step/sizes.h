// The sizes of a step of a dynamic convolution, and where its history keeps which position.
#pragma once

#include <algorithm>
#include <cstdint>

#include "thimble/graph/attributes.h"
#include "thimble/tensor/shape.h"

namespace thimble {

struct StepSizes {
  int64_t sentences;   // B
  int64_t hypotheses;  // N of each
  int64_t channels;    // C
  int64_t heads;       // H
  int64_t slots;       // K - 1, positions of the history
  int64_t ancestors;   // P of each hypothesis

  // Requires shapes that the shape rule accepts.
  StepSizes(const Shape& history, const Shape& ancestor_table, const Attributes& attributes)
      : sentences(history[1]),
        hypotheses(history[2]),
        channels(history[3]),
        heads(attributes.Int("heads")),
        slots(history[0]),
        ancestors(ancestor_table[2]) {}

  int64_t taps() const { return slots + 1; }
  int64_t head_channels() const { return channels / heads; }
  // Indices of the first channel of a head in x and y, and of its first logit.
  int64_t Channel(int64_t b, int64_t n, int64_t h) const {
    return (b * hypotheses + n) * channels + h * head_channels();
  }
  int64_t Logit(int64_t b, int64_t n, int64_t h) const {
    return ((b * hypotheses + n) * heads + h) * taps();
  }
  // Index of the first ancestor of a hypothesis, the one at the position before this.
  int64_t Ancestor(int64_t b, int64_t n) const { return (b * hypotheses + n) * ancestors; }
  int64_t SlotSize() const { return sentences * hypotheses * channels; }

  // What a step of this number means: negative ones are 0.
  static int64_t Position(int32_t step) { return std::max<int64_t>(0, step); }
  int64_t SlotOf(int64_t position) const { return position % slots; }
  // How many positions before this one have inputs and a tap.
  int64_t Earlier(int64_t position) const { return std::min(position, slots); }
};

}  // namespace thimble
