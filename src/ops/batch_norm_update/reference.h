// batch_norm_update as a formula.
#pragma once

#include "thimble/base/nearly_equal_parts.h"
#include "thimble/graph/reference.h"

namespace thimble {

struct BatchNormUpdateReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const double momentum = call.op.attributes.Float("momentum");
    const double count = static_cast<double>(call.op.attributes.Int("count"));
    const double unbias = count > 1 ? count / (count - 1) : 1;
    for (int64_t c = 0; c < call.out_shape(0).elements(); ++c) {
      const Statistics<T> batch = OfBatch(call, c);
      call.Out(0)[c] = T(1 - momentum) * call.In(0)[c] + T(momentum) * batch.mean;
      call.Out(1)[c] = T(1 - momentum) * call.In(1)[c] + T(momentum * unbias) * batch.variance;
    }
  }

 private:
  template <class T>
  struct Statistics {
    T mean;
    T variance;
  };

  // A channel's statistics over the whole batch: mean of the parts' means; mean of their variances
  // plus variance of their means, which is measured from the mean, so that nothing cancels.
  template <class T>
  static Statistics<T> OfBatch(const ReferenceCall<T>& call, int64_t channel) {
    const T* mean = call.In(2) + channel;
    const T* variance = call.In(3) + channel;
    if (call.in_shape(2).rank() == 1) return {*mean, *variance};
    const NearlyEqualParts parts{call.op.attributes.Int("samples"), call.in_shape(2)[0]};
    const int64_t channels = call.in_shape(2)[1];
    const auto average = [&](const auto& of_part) {
      T sum = T(0);
      for (int64_t part = 0; part < parts.parts; ++part) {
        sum += T(parts.Share(part)) * of_part(part * channels);
      }
      return sum;
    };
    const T center = average([&](int64_t i) { return mean[i]; });
    return {center, average([&](int64_t i) {
              return variance[i] + (mean[i] - center) * (mean[i] - center);
            })};
  }
};

}  // namespace thimble
