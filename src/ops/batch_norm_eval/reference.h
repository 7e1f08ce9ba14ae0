// batch_norm_eval and batch_norm_eval_grad as formulas.
#pragma once

#include <algorithm>
#include <cmath>

#include "thimble/ops/batch_norm/reference.h"

namespace thimble {

struct BatchNormEvalReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    ForEachChannelPart(call.op, [&](const ChannelPart& part) { RunPart(call, part); });
  }

 private:
  template <class T>
  static void RunPart(const ReferenceCall<T>& call, const ChannelPart& part) {
    using std::sqrt;
    const T epsilon = T(call.op.attributes.Float("epsilon"));
    const T mean = call.In(3)[part.statistic];
    const T scale = call.In(1)[part.channel] / sqrt(call.In(4)[part.statistic] + epsilon);
    const T beta = call.In(2)[part.channel];
    part.ForEach([&](int64_t i) {
      const T normalized = (call.In(0)[i] - mean) * scale + beta;
      call.Out(0)[i] = BehindRelu(call.op.attributes, normalized, normalized);
    });
  }
};

struct BatchNormEvalGradReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const int64_t channels = call.in_shape(1)[0];
    std::fill_n(call.Out(1), channels, T(0));
    std::fill_n(call.Out(2), channels, T(0));
    ForEachChannelPart(call.op, [&](const ChannelPart& part) { RunPart(call, part); });
  }

 private:
  template <class T>
  static void RunPart(const ReferenceCall<T>& call, const ChannelPart& part) {
    using std::sqrt;
    const T epsilon = T(call.op.attributes.Float("epsilon"));
    const T deviation = sqrt(call.In(4)[part.statistic] + epsilon);
    const T scale = call.In(1)[part.channel] / deviation;
    T dgamma = T(0);
    T dbeta = T(0);
    part.ForEach([&](int64_t i) {
      const T centred = call.In(0)[i] - call.In(3)[part.statistic];
      const T normalized = centred * scale + call.In(2)[part.channel];
      const T dy = BehindRelu(call.op.attributes, normalized, call.In(5)[i]);
      dgamma += dy * centred / deviation;
      dbeta += dy;
      call.Out(0)[i] = dy * scale;
    });
    call.Out(1)[part.channel] += dgamma;
    call.Out(2)[part.channel] += dbeta;
  }
};

}  // namespace thimble
