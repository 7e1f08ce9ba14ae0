// batch_norm and its gradients as formulas.
#pragma once

#include <algorithm>
#include <cmath>

#include "thimble/graph/reference.h"
#include "thimble/ops/batch_norm/batch_norm.h"

namespace thimble {

// `value`, an output or its gradient, after ReLU at a normalized x; unchanged if the op has no
// ReLU. Does not test (normalized > 0), so that NaN passes through.
template <class T>
T BehindRelu(const Attributes& attributes, T normalized, T value) {
  return attributes.Int("relu") != 0 && RealPart(normalized) <= 0 ? T(0) : value;
}

// The elements of one channel in one part of the samples: their indices in x and y.
struct ChannelPart {
  int64_t channel;
  int64_t statistic;  // index of its mean and variance
  int64_t begin, end, stride;

  // At least one, to avoid dividing by zero if there are no samples.
  double count() const {
    return static_cast<double>(std::max<int64_t>(1, (end - begin + stride - 1) / stride));
  }
  template <class Body>
  void ForEach(const Body& body) const {
    for (int64_t i = begin; i < end; i += stride) body(i);
  }
};

// Calls body(ChannelPart) for each part and channel of the call's x.
template <class Body>
void ForEachChannelPart(const OpCall& call, const Body& body) {
  const Shape& x = call.inputs[0];
  const int64_t channels = x[x.rank() - 1];
  const NearlyEqualParts parts = SampleParts(x, call.attributes);
  const int64_t per_sample = x[0] == 0 ? 0 : x.elements() / x[0];
  for (int64_t part = 0; part < parts.parts; ++part) {
    for (int64_t c = 0; c < channels; ++c) {
      body(ChannelPart{c, part * channels + c, parts.Begin(part) * per_sample + c,
                       parts.Begin(part + 1) * per_sample, channels});
    }
  }
}

// Of one channel in one part.
template <class T>
struct ChannelStatistics {
  T mean;
  T variance;

  ChannelStatistics(const T* x, const ChannelPart& part) {
    const T count = T(part.count());
    T sum = T(0);
    part.ForEach([&](int64_t i) { sum += x[i]; });
    mean = sum / count;
    T squares = T(0);
    part.ForEach([&](int64_t i) { squares += (x[i] - mean) * (x[i] - mean); });
    variance = squares / count;
  }
};

struct BatchNormStatisticsReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    ForEachChannelPart(call.op, [&](const ChannelPart& part) {
      const ChannelStatistics<T> statistics(call.In(0), part);
      call.Out(0)[part.statistic] = statistics.mean;
      call.Out(1)[part.statistic] = statistics.variance;
    });
  }
};

struct BatchNormReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    ForEachChannelPart(call.op, [&](const ChannelPart& part) { RunPart(call, part); });
  }

 private:
  template <class T>
  static void RunPart(const ReferenceCall<T>& call, const ChannelPart& part) {
    using std::sqrt;
    const T* x = call.In(0);
    const ChannelStatistics<T> statistics(x, part);
    const T epsilon = T(call.op.attributes.Float("epsilon"));
    const T scale = call.In(1)[part.channel] / sqrt(statistics.variance + epsilon);
    const T beta = call.In(2)[part.channel];
    part.ForEach([&](int64_t i) {
      const T normalized = (x[i] - statistics.mean) * scale + beta;
      call.Out(0)[i] = BehindRelu(call.op.attributes, normalized, normalized);
    });
    call.Out(1)[part.statistic] = statistics.mean;
    call.Out(2)[part.statistic] = statistics.variance;
  }
};

struct BatchNormGradReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    RunAndFinish(call, [](int64_t, T dx) { return dx; });
  }

  // `finish` gets the index and the gradient of each x and returns what is stored.
  template <class T, class Finish>
  static void RunAndFinish(const ReferenceCall<T>& call, const Finish& finish) {
    const int64_t channels = call.in_shape(1)[0];
    std::fill_n(call.Out(1), channels, T(0));
    std::fill_n(call.Out(2), channels, T(0));
    ForEachChannelPart(call.op, [&](const ChannelPart& part) { RunPart(call, part, finish); });
  }

 private:
  template <class T, class Finish>
  static void RunPart(const ReferenceCall<T>& call, const ChannelPart& part, const Finish& finish) {
    using std::sqrt;
    const T count = T(part.count());
    const T* x = call.In(0);
    const T mean = call.In(3)[part.statistic];
    const T epsilon = T(call.op.attributes.Float("epsilon"));
    const T deviation = sqrt(call.In(4)[part.statistic] + epsilon);
    const T inverse = T(1) / deviation;
    const T scale = call.In(1)[part.channel] / deviation;
    const T beta = call.In(2)[part.channel];
    const auto gradient = [&](int64_t i) {
      return BehindRelu(call.op.attributes, (x[i] - mean) * scale + beta, call.In(5)[i]);
    };
    T dgamma = T(0);
    T dbeta = T(0);
    part.ForEach([&](int64_t i) {
      dgamma += gradient(i) * (x[i] - mean) * inverse;
      dbeta += gradient(i);
    });
    part.ForEach([&](int64_t i) {
      const T normalized = (x[i] - mean) * inverse;
      call.Out(0)[i] =
          finish(i, scale * (gradient(i) - dbeta / count - normalized * dgamma / count));
    });
    call.Out(1)[part.channel] += dgamma;
    call.Out(2)[part.channel] += dbeta;
  }
};

struct BatchNormGradAddReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const T* other = call.In(6);
    BatchNormGradReference::RunAndFinish(call, [&](int64_t i, T dx) { return other[i] + dx; });
  }
};

}  // namespace thimble
