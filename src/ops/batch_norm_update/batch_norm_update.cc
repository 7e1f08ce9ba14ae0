// batch_norm_update: moves the running statistics towards those of the batch:
//   next = (1 - momentum) * running + momentum * batch
// The running variance is the unbiased one, as in PyTorch: batch variance * count / (count - 1).
#include "thimble/graph/op_def.h"
#include "thimble/ops/batch_norm_update/batch_norm_update_cuda.h"
#include "thimble/ops/batch_norm_update/reference.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

Result<std::vector<Shape>> BatchNormUpdateShapes(const OpCall& call) {
  THIMBLE_TRY(RequireAtLeast("count", call.attributes.Int("count"), 1));
  return AllSameShape({"running_mean", "running_variance", "mean", "variance"}, 2)(call);
}

}  // namespace

// A few hundred numbers for each layer are no work for threads: on a CPU the reference is the only
// kernel.
OpDef Make_batch_norm_update() {
  return OpDef("batch_norm_update")
      .Input("running_mean")
      .Input("running_variance")
      .Input("mean")
      .Input("variance")
      .Output("next_mean")
      .Output("next_variance")
      .Attribute("momentum", 0.1)
      .Attribute("count", int64_t{1})
      .ShapeRule(BatchNormUpdateShapes)
      .NoGradient("updates are not differentiated")
      .OutputMayReuse("next_mean", "running_mean")
      .OutputMayReuse("next_variance", "running_variance")
      .Flops(PerOutputElement(6))
      .Kernels({
#include "thimble/ops/batch_norm_update/kernels.inc"
      })
      .Reference<BatchNormUpdateReference>();
}

}  // namespace thimble
