// The sizes of attention.
#pragma once

#include <cmath>
#include <cstdint>

#include "thimble/graph/attributes.h"
#include "thimble/tensor/shape.h"

namespace thimble {

// The most sources (S) if probabilities are dropped: an element's index within its sample depends
// on this constant instead of S, so that draws do not depend on padding.
inline constexpr int64_t kMaxDroppedSources = 4096;

struct AttentionSizes {
  int64_t batch;     // B, sentences
  int64_t queries;   // T positions of q
  int64_t sources;   // S positions of k and v, padding included
  int64_t channels;  // C
  int64_t heads;     // H
  double scale;      // factor of the products of queries and keys

  // Requires shapes that the shape rule accepts.
  AttentionSizes(const Shape& q, const Shape& k, const Attributes& attributes)
      : batch(q[0]),
        queries(q[1]),
        sources(k[1]),
        channels(q[2]),
        heads(attributes.Int("heads")),
        scale(attributes.Float("scale")) {
    if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(head_channels()));
  }

  int64_t head_channels() const { return channels / heads; }
  // Indices of the first channel of a head in q, y, and in k, v.
  int64_t Query(int64_t b, int64_t t, int64_t h) const {
    return (b * queries + t) * channels + h * head_channels();
  }
  int64_t Source(int64_t b, int64_t s, int64_t h) const {
    return (b * sources + s) * channels + h * head_channels();
  }
  // Index of a query's first probability within its sample: what random draws use.
  int64_t DrawnProbability(int64_t t, int64_t h) const {
    return (t * heads + h) * kMaxDroppedSources;
  }
  bool IsLength(int64_t length) const { return length >= 0 && length <= sources; }
};

}  // namespace thimble
