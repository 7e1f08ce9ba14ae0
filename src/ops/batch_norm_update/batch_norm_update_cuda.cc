#include "thimble/ops/batch_norm_update/batch_norm_update_cuda.h"

#include "thimble/base/nearly_equal_parts.h"
#include "thimble/ops/batch_norm_update/batch_norm_update_device.h"

namespace thimble {
namespace {

void SetParts(const KernelCall& call, RunningNorm& norm) {
  const NearlyEqualParts parts{call.attributes.Int("samples"), call.in_shape(2)[0]};
  norm.parts = static_cast<int>(parts.parts);
  norm.larger_parts = static_cast<int>(parts.total % parts.parts);
  norm.larger_share = static_cast<float>(parts.Share(0));
  norm.smaller_share = static_cast<float>(parts.Share(parts.parts - 1));
}

RunningNorm MakeRunningNorm(const KernelCall& call) {
  const double momentum = call.attributes.Float("momentum");
  const auto count = static_cast<double>(call.attributes.Int("count"));
  const double unbias = count > 1 ? count / (count - 1) : 1;
  RunningNorm norm;
  norm.running_mean = call.In<float>(0);
  norm.running_variance = call.In<float>(1);
  norm.mean = call.In<float>(2);
  norm.variance = call.In<float>(3);
  norm.next_mean = call.Out<float>(0);
  norm.next_variance = call.Out<float>(1);
  norm.channels = static_cast<int>(call.out_shape(0).elements());
  norm.kept = static_cast<float>(1 - momentum);
  norm.mean_share = static_cast<float>(momentum);
  norm.variance_share = static_cast<float>(momentum * unbias);
  if (call.in_shape(2).rank() == 2) SetParts(call, norm);
  return norm;
}

}  // namespace

void BatchNormUpdateCuda::Run(const KernelCall& call) { RunGroup({&call, 1}); }

void BatchNormUpdateCuda::RunGroup(std::span<const KernelCall> calls) {
  RunningNorms norms;
  int count = 0;
  for (const KernelCall& call : calls) {
    norms.norms[count++] = MakeRunningNorm(call);
    if (count < kMaxRunningNorms && &call != &calls.back()) continue;
    LaunchBatchNormUpdate(call.stream, norms, count);
    count = 0;
  }
}

}  // namespace thimble
