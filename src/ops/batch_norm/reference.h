// batch_norm and its gradients as formulas.
#pragma once

#include <algorithm>
#include <cmath>

#include "thimble/graph/reference.h"

namespace thimble {

// What ReLU leaves of `value`, an output or its gradient, at a normalized x; all of it where the op
// has no ReLU. Not (normalized > 0), so that NaN passes through.
template <class T>
T BehindRelu(const Attributes& attributes, T normalized, T value) {
  return attributes.Int("relu") != 0 && RealPart(normalized) <= 0 ? T(0) : value;
}

struct BatchNormReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const int64_t channels = call.in_shape(1)[0];
    for (int64_t channel = 0; channel < channels; ++channel) RunChannel(call, channel, channels);
  }

 private:
  template <class T>
  static void RunChannel(const ReferenceCall<T>& call, int64_t channel, int64_t channels) {
    using std::sqrt;
    const int64_t elements = call.in_shape(0).elements();
    const T count = T(static_cast<double>(std::max<int64_t>(1, elements / channels)));
    const T* x = call.In(0);
    T sum = T(0);
    for (int64_t i = channel; i < elements; i += channels) sum += x[i];
    const T mean = sum / count;
    T squares = T(0);
    for (int64_t i = channel; i < elements; i += channels) squares += (x[i] - mean) * (x[i] - mean);
    const T variance = squares / count;
    const T scale = call.In(1)[channel] / sqrt(variance + T(call.op.attributes.Float("epsilon")));
    const T beta = call.In(2)[channel];
    for (int64_t i = channel; i < elements; i += channels) {
      const T normalized = (x[i] - mean) * scale + beta;
      call.Out(0)[i] = BehindRelu(call.op.attributes, normalized, normalized);
    }
    call.Out(1)[channel] = mean;
    call.Out(2)[channel] = variance;
  }
};

struct BatchNormGradReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const int64_t channels = call.in_shape(1)[0];
    for (int64_t channel = 0; channel < channels; ++channel) {
      RunChannel(call, channel, channels, [](int64_t, T dx) { return dx; });
    }
  }

  // `finish` gets the index and the gradient of each x and returns what is stored.
  template <class T, class Finish>
  static void RunChannel(const ReferenceCall<T>& call, int64_t channel, int64_t channels,
                         const Finish& finish) {
    using std::sqrt;
    const int64_t elements = call.in_shape(0).elements();
    const T count = T(static_cast<double>(std::max<int64_t>(1, elements / channels)));
    const T* x = call.In(0);
    const T gamma = call.In(1)[channel];
    const T beta = call.In(2)[channel];
    const T mean = call.In(3)[channel];
    const T deviation = sqrt(call.In(4)[channel] + T(call.op.attributes.Float("epsilon")));
    const T inverse = T(1) / deviation;
    const T scale = gamma / deviation;
    const auto gradient = [&](int64_t i) {
      return BehindRelu(call.op.attributes, (x[i] - mean) * scale + beta, call.In(5)[i]);
    };
    T dgamma = T(0);
    T dbeta = T(0);
    for (int64_t i = channel; i < elements; i += channels) {
      dgamma += gradient(i) * (x[i] - mean) * inverse;
      dbeta += gradient(i);
    }
    for (int64_t i = channel; i < elements; i += channels) {
      const T normalized = (x[i] - mean) * inverse;
      call.Out(0)[i] =
          finish(i, scale * (gradient(i) - dbeta / count - normalized * dgamma / count));
    }
    call.Out(1)[channel] = dgamma;
    call.Out(2)[channel] = dbeta;
  }
};

struct BatchNormGradAddReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const int64_t channels = call.in_shape(1)[0];
    const T* other = call.In(6);
    for (int64_t channel = 0; channel < channels; ++channel) {
      BatchNormGradReference::RunChannel(call, channel, channels,
                                         [&](int64_t i, T dx) { return other[i] + dx; });
    }
  }
};

}  // namespace thimble
