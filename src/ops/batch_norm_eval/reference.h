// batch_norm_eval and batch_norm_eval_grad as formulas.
#pragma once

#include <cmath>

#include "thimble/ops/batch_norm/reference.h"

namespace thimble {

struct BatchNormEvalReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    using std::sqrt;
    const T epsilon = T(call.op.attributes.Float("epsilon"));
    const int64_t channels = call.in_shape(1)[0];
    for (int64_t i = 0; i < call.in_shape(0).elements(); ++i) {
      const int64_t channel = i % channels;
      const T scale = call.In(1)[channel] / sqrt(call.In(4)[channel] + epsilon);
      const T normalized = (call.In(0)[i] - call.In(3)[channel]) * scale + call.In(2)[channel];
      call.Out(0)[i] = BehindRelu(call.op.attributes, normalized, normalized);
    }
  }
};

struct BatchNormEvalGradReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    using std::sqrt;
    const T epsilon = T(call.op.attributes.Float("epsilon"));
    const int64_t elements = call.in_shape(0).elements();
    const int64_t channels = call.in_shape(1)[0];
    for (int64_t channel = 0; channel < channels; ++channel) {
      const T deviation = sqrt(call.In(4)[channel] + epsilon);
      const T scale = call.In(1)[channel] / deviation;
      T dgamma = T(0);
      T dbeta = T(0);
      for (int64_t i = channel; i < elements; i += channels) {
        const T centred = call.In(0)[i] - call.In(3)[channel];
        const T normalized = centred * scale + call.In(2)[channel];
        const T dy = BehindRelu(call.op.attributes, normalized, call.In(5)[i]);
        dgamma += dy * centred / deviation;
        dbeta += dy;
        call.Out(0)[i] = dy * scale;
      }
      call.Out(1)[channel] = dgamma;
      call.Out(2)[channel] = dbeta;
    }
  }
};

}  // namespace thimble
