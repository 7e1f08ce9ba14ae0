// merge_statistics as a formula: the pairwise rule of Chan, Golub and LeVeque, per sample.
#pragma once

#include "thimble/base/nearly_equal_parts.h"
#include "thimble/graph/reference.h"

namespace thimble {

struct MergeStatisticsReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const int64_t seen = call.template InAs<int32_t>(4)[0];
    const int64_t channels = call.out_shape(0).elements();
    const bool in_groups = call.in_shape(2) != call.out_shape(0);
    const NearlyEqualParts groups{call.op.attributes.Int("samples"),
                                  in_groups ? call.in_shape(2)[0] : 1};
    for (int64_t group = 0; group < groups.parts; ++group) {
      // From the second one on what the first ones made is what they join.
      const T* mean_sum = group == 0 ? call.In(0) : call.Out(0);
      const T* variance_sum = group == 0 ? call.In(1) : call.Out(1);
      const T* mean = call.In(2) + group * channels;
      const T* variance = call.In(3) + group * channels;
      const auto before = static_cast<double>(seen + groups.Begin(group));
      const auto samples = static_cast<double>(groups.Size(group));
      const T share = T(samples / (before + samples));
      const T kept = T(before / (before + samples));
      for (int64_t c = 0; c < channels; ++c) {
        const T old_mean = before == 0 ? mean[c] : mean_sum[c];
        const T old_variance = before == 0 ? variance[c] : variance_sum[c];
        const T delta = mean[c] - old_mean;
        call.Out(0)[c] = old_mean + share * delta;
        call.Out(1)[c] = kept * old_variance + share * variance[c] + kept * share * delta * delta;
      }
    }
  }
};

}  // namespace thimble
