// merge_statistics: merges the mean and variance of the parts of a batch seen so far with those of
// one more part of `samples` samples. After the last part they are the mean of the means, and the
// mean of the variances plus the variance of the means, weighted by samples. The contents of
// `mean_sum` and `variance_sum` before the first part (seen == 0) are ignored.
//
// mean and variance are (C), or (groups, C) if the part itself was normalised in nearly equal
// groups, which are merged one by one.
#include "thimble/ops/merge_statistics/merge_statistics.h"

#include "thimble/base/nearly_equal_parts.h"
#include "thimble/graph/op_def.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

// The pairwise rule of Chan, Golub and LeVeque, per sample.
struct MergeStatisticsReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const int64_t seen = call.template InAs<int32_t>(4)[0];
    const int64_t channels = call.out_shape(0).elements();
    const bool in_groups = call.in_shape(2) != call.out_shape(0);
    const NearlyEqualParts groups{call.op.attributes.Int("samples"),
                                  in_groups ? call.in_shape(2)[0] : 1};
    for (int64_t group = 0; group < groups.parts; ++group) {
      // From the second group on, merge with the result of the previous ones.
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

Result<std::vector<Shape>> MergeStatisticsShapes(const OpCall& call) {
  THIMBLE_TRY(RequireAtLeast("samples", call.attributes.Int("samples"), 1));
  THIMBLE_TRY(RequireShape("seen", call.inputs[4], Shape{1}));
  const Shape& sum = call.inputs[0];
  const Shape& mean = call.inputs[2];
  THIMBLE_TRY(RequireShape("variance_sum", call.inputs[1], sum));
  if (mean.rank() == 2 && sum.rank() == 1) {
    THIMBLE_TRY(RequireShape("mean", mean, {mean[0], sum[0]}));
    THIMBLE_TRY(RequireAtLeast("the number of groups", mean[0], 1));
    THIMBLE_TRY(RequireAtLeast("samples", call.attributes.Int("samples"), mean[0]));
  } else {
    THIMBLE_TRY(RequireShape("mean", mean, sum));
  }
  THIMBLE_TRY(RequireShape("variance", call.inputs[3], mean));
  return std::vector<Shape>(2, sum);
}

}  // namespace

// A few hundred numbers per layer are too little work for threads: on a CPU the reference is the
// only kernel.
OpDef Make_merge_statistics() {
  return OpDef("merge_statistics")
      .Input("mean_sum", DType::kF32)
      .Input("variance_sum", DType::kF32)
      .Input("mean", DType::kF32)
      .Input("variance", DType::kF32)
      .Input("seen", DType::kI32)
      .Output("next_mean", DType::kF32)
      .Output("next_variance", DType::kF32)
      .Attribute("samples", int64_t{1})
      .ShapeRule(MergeStatisticsShapes)
      .NoGradient("statistics of parts are not differentiated")
      .OutputMayReuse("next_mean", "mean_sum")
      .OutputMayReuse("next_variance", "variance_sum")
      .Flops([](const OpCall& call) { return 9 * call.inputs[2].elements(); })
      .CudaKernel<MergeStatisticsCuda>("MergeStatisticsCuda")
      .Reference<MergeStatisticsReference>();
}

}  // namespace thimble
