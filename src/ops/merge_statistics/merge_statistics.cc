// merge_statistics: mean and variance of the parts of a batch that were seen so far, joined with
// those of one more part of `samples` samples. After the last part they are the mean of the means,
// and the mean of the variances plus the variance of the means, weighted by samples. What
// `mean_sum` and `variance_sum` hold before the first part (seen == 0) is never looked at.
//
// mean and variance are (C), or (groups, C) where the part itself was normalised in nearly equal
// groups: these join one after the other.
#include "thimble/graph/op_def.h"
#include "thimble/ops/merge_statistics/merge_statistics_cuda.h"
#include "thimble/ops/merge_statistics/reference.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

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

// A few hundred numbers for each layer are no work for threads: on a CPU the reference is the only
// kernel.
OpDef Make_merge_statistics() {
  return OpDef("merge_statistics")
      .Input("mean_sum")
      .Input("variance_sum")
      .Input("mean")
      .Input("variance")
      .Input("seen", DType::kI32)
      .Output("next_mean")
      .Output("next_variance")
      .Attribute("samples", int64_t{1})
      .ShapeRule(MergeStatisticsShapes)
      .NoGradient("statistics of parts are not differentiated")
      .OutputMayReuse("next_mean", "mean_sum")
      .OutputMayReuse("next_variance", "variance_sum")
      .Flops([](const OpCall& call) { return 9 * call.inputs[2].elements(); })
      .Kernels({
#include "thimble/ops/merge_statistics/kernels.inc"
      })
      .Reference<MergeStatisticsReference>();
}

}  // namespace thimble
