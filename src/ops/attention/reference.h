// attention and its gradient as formulas.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "thimble/graph/reference.h"
#include "thimble/ops/attention/sizes.h"
#include "thimble/ops/dropout/weight_dropout.h"
#include "thimble/ops/softmax_formula.h"

namespace thimble {

// Inputs are copied, since outputs may overwrite them.
template <class T>
struct AttentionFormula {
  AttentionFormula(const ReferenceCall<T>& call, size_t samples_input)
      : sizes(call.in_shape(0), call.in_shape(1), call.op.attributes),
        dropout(WeightDropout::Of(call, call.op.attributes, samples_input)),
        q(Copy(call, 0)),
        k(Copy(call, 1)),
        v(Copy(call, 2)),
        lengths(call.template InAs<int32_t>(3)) {}

  static std::vector<T> Copy(const ReferenceCall<T>& call, size_t input) {
    return {call.In(input), call.In(input) + call.in_shape(input).elements()};
  }
  // Calls visit(b, t, h) for every query and head of the sentences that have sources. The outputs
  // of the others are filled with zero or, if the length is out of range, with NaN.
  template <class Visit>
  void ForEachQuery(const ReferenceCall<T>& call, const Visit& visit) const {
    for (int64_t b = 0; b < sizes.batch; ++b) {
      const bool valid = sizes.IsLength(lengths[b]);
      const T value = T(valid ? 0 : std::numeric_limits<double>::quiet_NaN());
      for (size_t o = 0; o < call.outputs.size(); ++o) {
        const int64_t size = call.out_shape(o).elements() / sizes.batch;
        std::fill_n(call.Out(o) + b * size, size, value);
      }
      for (int64_t t = 0; t < sizes.queries && valid && lengths[b] > 0; ++t) {
        for (int64_t h = 0; h < sizes.heads; ++h) visit(b, t, h);
      }
    }
  }
  T Dot(const T* a, const T* b) const {
    T sum = T(0);
    for (int64_t c = 0; c < sizes.head_channels(); ++c) sum += a[c] * b[c];
    return sum;
  }
  std::vector<T> Probabilities(int64_t b, int64_t t, int64_t h) const {
    std::vector<T> row;
    for (int64_t s = 0; s < lengths[b]; ++s) {
      row.push_back(T(sizes.scale) *
                    Dot(q.data() + sizes.Query(b, t, h), k.data() + sizes.Source(b, s, h)));
    }
    ReplaceBySoftmax(row.data(), lengths[b]);
    return row;
  }
  T Behind(int64_t b, int64_t t, int64_t h, int64_t s, T number) const {
    return dropout.Behind(b, sizes.DrawnProbability(t, h) + s, number);
  }

  AttentionSizes sizes;
  WeightDropout dropout;
  std::vector<T> q;  // (B, T, C)
  std::vector<T> k;  // (B, S, C)
  std::vector<T> v;  // (B, S, C)
  const int32_t* lengths;
};

struct AttentionReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const AttentionFormula<T> formula(call, 4);
    const AttentionSizes& sizes = formula.sizes;
    formula.ForEachQuery(call, [&](int64_t b, int64_t t, int64_t h) {
      const std::vector<T> probabilities = formula.Probabilities(b, t, h);
      T* y = call.Out(0) + sizes.Query(b, t, h);
      for (int64_t s = 0; s < formula.lengths[b]; ++s) {
        const T weight = formula.Behind(b, t, h, s, probabilities[static_cast<size_t>(s)]);
        const T* v = formula.v.data() + sizes.Source(b, s, h);
        for (int64_t c = 0; c < sizes.head_channels(); ++c) y[c] += weight * v[c];
      }
    });
  }
};

struct AttentionGradReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const AttentionFormula<T> formula(call, 5);
    const std::vector<T> dy = AttentionFormula<T>::Copy(call, 4);
    formula.ForEachQuery(call, [&](int64_t b, int64_t t, int64_t h) {
      AddQuery(call, formula, dy.data() + formula.sizes.Query(b, t, h), b, t, h);
    });
  }

 private:
  // Adds the share of one query and head. dy: (C / H).
  template <class T>
  static void AddQuery(const ReferenceCall<T>& call, const AttentionFormula<T>& formula,
                       const T* dy, int64_t b, int64_t t, int64_t h) {
    const AttentionSizes& sizes = formula.sizes;
    const int64_t length = formula.lengths[b];
    const std::vector<T> probabilities = formula.Probabilities(b, t, h);
    std::vector<T> gradients;
    for (int64_t s = 0; s < length; ++s) {
      const int64_t source = sizes.Source(b, s, h);
      gradients.push_back(formula.Behind(b, t, h, s, formula.Dot(dy, formula.v.data() + source)));
      const T weight = formula.Behind(b, t, h, s, probabilities[static_cast<size_t>(s)]);
      for (int64_t c = 0; c < sizes.head_channels(); ++c) call.Out(2)[source + c] += weight * dy[c];
    }
    ReplaceBySoftmaxGradient(probabilities.data(), gradients.data(), length);
    const int64_t query = sizes.Query(b, t, h);
    for (int64_t s = 0; s < length; ++s) {
      const int64_t source = sizes.Source(b, s, h);
      const T slope = T(sizes.scale) * gradients[static_cast<size_t>(s)];
      for (int64_t c = 0; c < sizes.head_channels(); ++c) {
        call.Out(0)[query + c] += slope * formula.k[static_cast<size_t>(source + c)];
        call.Out(1)[source + c] += slope * formula.q[static_cast<size_t>(query + c)];
      }
    }
  }
};

}  // namespace thimble
