// merge_statistics as a formula: the pairwise rule of Chan, Golub and LeVeque, per sample.
#pragma once

#include "thimble/graph/reference.h"

namespace thimble {

struct MergeStatisticsReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const double seen = call.template InAs<int32_t>(4)[0];
    const auto samples = static_cast<double>(call.op.attributes.Int("samples"));
    const T share = T(samples / (seen + samples));
    const T kept = T(seen / (seen + samples));
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      const T mean = call.In(2)[i];
      const T variance = call.In(3)[i];
      if (seen == 0) {
        call.Out(0)[i] = mean;
        call.Out(1)[i] = variance;
        continue;
      }
      const T old_mean = call.In(0)[i];
      const T delta = mean - old_mean;
      const T within = kept * call.In(1)[i] + share * variance;
      call.Out(0)[i] = old_mean + share * delta;
      call.Out(1)[i] = within + kept * share * delta * delta;
    }
  }
};

}  // namespace thimble
