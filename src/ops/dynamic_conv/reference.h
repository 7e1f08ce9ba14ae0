// dynamic_conv and its gradient as formulas.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "thimble/graph/reference.h"
#include "thimble/ops/dropout/weight_dropout.h"
#include "thimble/ops/dynamic_conv/sizes.h"
#include "thimble/ops/softmax_formula.h"

namespace thimble {

// Inputs are copied, since outputs may overwrite them.
template <class T>
struct DynamicConvFormula {
  DynamicConvFormula(const ReferenceCall<T>& call, size_t samples_input)
      : sizes(call.in_shape(0), call.in_shape(1), call.op.attributes),
        dropout(WeightDropout::Of(call, call.op.attributes, samples_input)),
        x(call.In(0), call.In(0) + call.in_shape(0).elements()),
        logits(call.In(1), call.In(1) + call.in_shape(1).elements()),
        lengths(call.template InAs<int32_t>(2)) {}

  // Calls visit(b, t, h) for every position and head of a sentence. Requires IsLength.
  template <class Visit>
  void ForEachRealPosition(int64_t b, const Visit& visit) const {
    for (int64_t t = 0; t < lengths[b]; ++t) {
      for (int64_t h = 0; h < sizes.heads; ++h) visit(t, h);
    }
  }
  // Softmax over the logits of a position and head.
  std::vector<T> Probabilities(int64_t b, int64_t t, int64_t h) const {
    const T* first = logits.data() + sizes.Logit(b, t, h);
    std::vector<T> probabilities(first, first + sizes.taps);
    ReplaceBySoftmax(probabilities.data(), sizes.taps);
    return probabilities;
  }
  T Weight(int64_t b, int64_t t, int64_t h, int64_t k, T number) const {
    return dropout.Behind(b, sizes.DrawnWeight(t, h) + k, number);
  }

  DynamicConvSizes sizes;
  WeightDropout dropout;
  std::vector<T> x;       // (B, T, C)
  std::vector<T> logits;  // (B, T, H * K)
  const int32_t* lengths;
};

// Fills the part of `out` (B, ...) that belongs to a sentence: NaN if its length is out of range,
// otherwise zero.
template <class T>
void FillSentence(const DynamicConvSizes& sizes, const int32_t* lengths, int64_t b,
                  const Shape& shape, T* out) {
  const int64_t size = shape.elements() / sizes.batch;
  const double value = sizes.IsLength(lengths[b]) ? 0 : std::numeric_limits<double>::quiet_NaN();
  std::fill_n(out + b * size, size, T(value));
}

struct DynamicConvReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const DynamicConvFormula<T> formula(call, 3);
    const DynamicConvSizes& sizes = formula.sizes;
    for (int64_t b = 0; b < sizes.batch; ++b) {
      FillSentence(sizes, formula.lengths, b, call.out_shape(0), call.Out(0));
      if (!sizes.IsLength(formula.lengths[b])) continue;
      formula.ForEachRealPosition(b, [&](int64_t t, int64_t h) {
        const std::vector<T> probabilities = formula.Probabilities(b, t, h);
        const TapRange taps = sizes.Reaching(t, formula.lengths[b]);
        for (int64_t k = taps.begin; k < taps.end; ++k) {
          const T weight = formula.Weight(b, t, h, k, probabilities[static_cast<size_t>(k)]);
          const T* x = formula.x.data() + sizes.Channel(b, t + k - sizes.before, h);
          T* y = call.Out(0) + sizes.Channel(b, t, h);
          for (int64_t c = 0; c < sizes.head_channels(); ++c) y[c] += weight * x[c];
        }
      });
    }
  }
};

struct DynamicConvGradReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const DynamicConvFormula<T> formula(call, 4);
    const DynamicConvSizes& sizes = formula.sizes;
    const std::vector<T> dy(call.In(3), call.In(3) + call.in_shape(3).elements());
    for (int64_t b = 0; b < sizes.batch; ++b) {
      FillSentence(sizes, formula.lengths, b, call.out_shape(0), call.Out(0));
      FillSentence(sizes, formula.lengths, b, call.out_shape(1), call.Out(1));
      if (!sizes.IsLength(formula.lengths[b])) continue;
      formula.ForEachRealPosition(b, [&](int64_t t, int64_t h) {
        AddPosition(formula, dy.data(), b, t, h, call.Out(0), call.Out(1) + sizes.Logit(b, t, h));
      });
    }
  }

 private:
  // dlogits (K) of a position and head, and its share of dx (B, T, C).
  template <class T>
  static void AddPosition(const DynamicConvFormula<T>& formula, const T* dy, int64_t b, int64_t t,
                          int64_t h, T* dx, T* dlogits) {
    const DynamicConvSizes& sizes = formula.sizes;
    const std::vector<T> probabilities = formula.Probabilities(b, t, h);
    const TapRange taps = sizes.Reaching(t, formula.lengths[b]);
    const T* out = dy + sizes.Channel(b, t, h);
    for (int64_t k = taps.begin; k < taps.end; ++k) {
      const T weight = formula.Weight(b, t, h, k, probabilities[static_cast<size_t>(k)]);
      const int64_t place = sizes.Channel(b, t + k - sizes.before, h);
      T product = T(0);
      for (int64_t c = 0; c < sizes.head_channels(); ++c) {
        dx[place + c] += weight * out[c];
        product += formula.x[static_cast<size_t>(place + c)] * out[c];
      }
      dlogits[k] = formula.Weight(b, t, h, k, product);
    }
    ReplaceBySoftmaxGradient(probabilities.data(), dlogits, sizes.taps);
  }
};

}  // namespace thimble
