// dropout as a formula.
#pragma once

#include "thimble/graph/reference.h"
#include "thimble/ops/dropout/dropout_draw.h"

namespace thimble {

struct DropoutReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const int64_t elements = call.in_shape(0).elements();
    if (elements == 0) return;
    const Attributes& attributes = call.op.attributes;
    const double rate = attributes.Float("rate");
    const DropoutDraw draw(static_cast<uint64_t>(attributes.Int("seed")),
                           static_cast<uint32_t>(attributes.Int("stream")), rate);
    const int64_t per_sample = elements / call.in_shape(0)[0];
    const auto epoch = static_cast<uint32_t>(call.template InAs<int32_t>(2)[0]);
    for (int64_t i = 0; i < elements; ++i) {
      const auto sample = static_cast<uint32_t>(call.template InAs<int32_t>(1)[i / per_sample]);
      const int64_t element = i % per_sample;
      const auto words =
          draw.Words(epoch, sample, static_cast<uint32_t>(element / kElementsPerDraw));
      const bool kept = draw.Keeps(words[static_cast<size_t>(element % kElementsPerDraw)]);
      call.Out(0)[i] = kept ? call.In(0)[i] * T(1.0 / (1.0 - rate)) : T(0);
    }
  }
};

}  // namespace thimble
