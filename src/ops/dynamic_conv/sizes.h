// The sizes of a dynamic convolution, and which positions its taps reach.
#pragma once

#include <algorithm>
#include <cstdint>

#include "thimble/graph/attributes.h"
#include "thimble/tensor/shape.h"

namespace thimble {

// Taps [begin, end) of a position.
struct TapRange {
  int64_t begin;
  int64_t end;
};

struct DynamicConvSizes {
  int64_t batch;      // B, sentences
  int64_t positions;  // T of each, padding included
  int64_t channels;   // C
  int64_t heads;      // H
  int64_t taps;       // K
  int64_t before;     // P: tap k of position t reads position t + k - P

  // Requires shapes that the shape rule accepts.
  DynamicConvSizes(const Shape& x, const Shape& logits, const Attributes& attributes)
      : batch(x[0]),
        positions(x[1]),
        channels(x[2]),
        heads(attributes.Int("heads")),
        taps(logits[2] / heads),
        before(attributes.Int("causal") != 0 ? taps - 1 : taps / 2) {}

  int64_t head_channels() const { return channels / heads; }
  // Indices of the first channel and the first logit of a head.
  int64_t Channel(int64_t b, int64_t t, int64_t h) const {
    return (b * positions + t) * channels + h * head_channels();
  }
  int64_t Logit(int64_t b, int64_t t, int64_t h) const {
    return ((b * positions + t) * heads + h) * taps;
  }
  // Index of the first weight of a position and head within its sample: what random draws use.
  int64_t DrawnWeight(int64_t t, int64_t h) const { return (t * heads + h) * taps; }
  bool IsLength(int64_t length) const { return length >= 0 && length <= positions; }
  // The taps of a position that reach a position of its sentence.
  TapRange Reaching(int64_t t, int64_t length) const {
    return {std::max<int64_t>(0, before - t), std::min(taps, length + before - t)};
  }
};

}  // namespace thimble
