// batch_norm and batch_norm_grad as formulas.
#pragma once

#include <algorithm>
#include <cmath>

#include "thimble/graph/reference.h"

namespace thimble {

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
      call.Out(0)[i] = (x[i] - mean) * scale + beta;
    }
    call.Out(1)[channel] = mean;
    call.Out(2)[channel] = variance;
  }
};

struct BatchNormGradReference {
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
    const T mean = call.In(2)[channel];
    const T inverse = T(1) / sqrt(call.In(3)[channel] + T(call.op.attributes.Float("epsilon")));
    const T* dy = call.In(4);
    T dgamma = T(0);
    T dbeta = T(0);
    for (int64_t i = channel; i < elements; i += channels) {
      dgamma += dy[i] * (x[i] - mean) * inverse;
      dbeta += dy[i];
    }
    for (int64_t i = channel; i < elements; i += channels) {
      const T normalized = (x[i] - mean) * inverse;
      call.Out(0)[i] =
          call.In(1)[channel] * inverse * (dy[i] - dbeta / count - normalized * dgamma / count);
    }
    call.Out(1)[channel] = dgamma;
    call.Out(2)[channel] = dbeta;
  }
};

}  // namespace thimble
