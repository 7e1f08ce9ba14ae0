// Dropout of weights inside another op (the taps of dynamic_conv, the probabilities of attention):
// nothing is stored for backward, which draws again. Such an op has the attributes rate, seed and
// stream and, only if rate > 0, two more inputs after all others: samples (B) and epoch (1).
#pragma once

#include <cstdint>

#include "thimble/graph/attributes.h"
#include "thimble/ops/dropout/dropout_draw.h"

namespace thimble {

struct WeightDropout {
  // `samples` and `epoch` are not read if the rate is 0.
  WeightDropout(const Attributes& attributes, const int32_t* samples_input,
                const int32_t* epoch_input)
      : rate(attributes.Float("rate")),
        draw(static_cast<uint64_t>(attributes.Int("seed")),
             static_cast<uint32_t>(attributes.Int("stream")), rate),
        samples(samples_input),
        epoch(rate > 0 ? static_cast<uint32_t>(epoch_input[0]) : 0) {}
  // From a KernelCall or a ReferenceCall; `samples_input` is the index of that input.
  template <class Call>
  static WeightDropout Of(const Call& call, const Attributes& attributes, size_t samples_input) {
    if (call.inputs.size() <= samples_input) return {attributes, nullptr, nullptr};
    return {attributes, IntegersOf(call, samples_input), IntegersOf(call, samples_input + 1)};
  }

  bool drops() const { return rate > 0; }
  uint32_t Sample(int64_t row) const { return static_cast<uint32_t>(samples[row]); }
  // The formula: a weight of row `row` of the batch behind dropout. `element` is its index within
  // the sample.
  template <class T>
  T Behind(int64_t row, int64_t element, T weight) const {
    if (!drops()) return weight;
    const auto words =
        draw.Words(epoch, Sample(row), static_cast<uint32_t>(element / kElementsPerDraw));
    const bool kept = draw.Keeps(words[static_cast<size_t>(element % kElementsPerDraw)]);
    return kept ? weight * T(1.0 / (1.0 - rate)) : T(0);
  }

  double rate;
  DropoutDraw draw;
  const int32_t* samples;  // (B)
  uint32_t epoch;

 private:
  template <class Call>
  static const int32_t* IntegersOf(const Call& call, size_t input) {
    if constexpr (requires { call.template In<int32_t>(input); }) {
      return call.template In<int32_t>(input);
    } else {
      return call.template InAs<int32_t>(input);
    }
  }
};

}  // namespace thimble
