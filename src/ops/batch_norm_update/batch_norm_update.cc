// batch_norm_update: moves the running statistics towards those of the batch:
//   next = (1 - momentum) * running + momentum * batch
// The running variance is the unbiased one, as in PyTorch: batch variance * count / (count - 1).
//
// mean and variance are (C), or (parts, C) from ghost batch norm, which splits the batch of
// `samples` into nearly equal parts. Those are combined first: mean of means; mean of variances
// plus variance of means, all weighted by samples. `count` is always that of the whole batch.
//
// A gradient_factor of 0 marks an update that is skipped: the statistics stay as they are.
#include "thimble/ops/batch_norm_update/batch_norm_update.h"

#include "thimble/base/nearly_equal_parts.h"
#include "thimble/graph/op_def.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

struct BatchNormUpdateReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const double momentum = call.op.attributes.Float("momentum");
    const double count = static_cast<double>(call.op.attributes.Int("count"));
    const double unbias = count > 1 ? count / (count - 1) : 1;
    const bool skipped = call.op.inputs.size() > kFactorInput && call.In(kFactorInput)[0] == T(0);
    for (int64_t c = 0; c < call.out_shape(0).elements(); ++c) {
      if (skipped) {
        call.Out(0)[c] = call.In(0)[c];
        call.Out(1)[c] = call.In(1)[c];
        continue;
      }
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
  // plus variance of their means, computed around the mean to avoid cancellation.
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

Result<std::vector<Shape>> BatchNormUpdateShapes(const OpCall& call) {
  THIMBLE_TRY(RequireAtLeast("count", call.attributes.Int("count"), 1));
  const Shape& running = call.inputs[0];
  const Shape& mean = call.inputs[2];
  THIMBLE_TRY(RequireShape("running_variance", call.inputs[1], running));
  if (mean.rank() != 2 || running.rank() != 1) {
    THIMBLE_TRY(RequireShape("mean", mean, running));
  } else {
    THIMBLE_TRY(RequireShape("mean", mean, {mean[0], running[0]}));
    THIMBLE_TRY(RequireAtLeast("the number of parts", mean[0], 1));
    THIMBLE_TRY(RequireAtLeast("samples", call.attributes.Int("samples"), mean[0]));
  }
  THIMBLE_TRY(RequireShape("variance", call.inputs[3], mean));
  if (call.inputs.size() > kFactorInput) {
    THIMBLE_TRY(RequireShape("gradient_factor", call.inputs[kFactorInput], Shape{1}));
  }
  return std::vector<Shape>{running, running};
}

// Six for each channel; combining parts adds a sum of means and one of squared distances for each.
int64_t UpdateFlops(const OpCall& call) {
  const int64_t combined = call.inputs[2].rank() == 2 ? 7 * call.inputs[2].elements() : 0;
  return 6 * call.inputs[0].elements() + combined;
}

}  // namespace

// A few hundred numbers per layer are too little work for threads: on a CPU the reference is the
// only kernel.
OpDef Make_batch_norm_update() {
  return OpDef("batch_norm_update")
      .Input("running_mean", DType::kF32)
      .Input("running_variance", DType::kF32)
      .Input("mean", DType::kF32)
      .Input("variance", DType::kF32)
      .OptionalInput("gradient_factor", DType::kF32)
      .Output("next_mean", DType::kF32)
      .Output("next_variance", DType::kF32)
      .Attribute("momentum", 0.1)
      .Attribute("count", int64_t{1})
      .Attribute("samples", int64_t{0})
      .ShapeRule(BatchNormUpdateShapes)
      .NoGradient("updates are not differentiated")
      .OutputMayReuse("next_mean", "running_mean")
      .OutputMayReuse("next_variance", "running_variance")
      .Flops(UpdateFlops)
      .CudaKernel<BatchNormUpdateCuda>("BatchNormUpdateCuda")
      .Reference<BatchNormUpdateReference>();
}

}  // namespace thimble
