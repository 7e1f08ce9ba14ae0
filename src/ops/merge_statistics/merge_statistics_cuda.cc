#include "thimble/ops/merge_statistics/merge_statistics_cuda.h"

#include "thimble/ops/merge_statistics/merge_statistics_device.h"

namespace thimble {
namespace {

MergedNorm MakeMergedNorm(const KernelCall& call) {
  MergedNorm norm;
  norm.mean_sum = call.In<float>(0);
  norm.variance_sum = call.In<float>(1);
  norm.mean = call.In<float>(2);
  norm.variance = call.In<float>(3);
  norm.seen = call.In<int32_t>(4);
  norm.next_mean = call.Out<float>(0);
  norm.next_variance = call.Out<float>(1);
  norm.channels = static_cast<int>(call.out_shape(0).elements());
  norm.samples = static_cast<int>(call.attributes.Int("samples"));
  const bool in_groups = call.in_shape(2) != call.out_shape(0);
  norm.groups = in_groups ? static_cast<int>(call.in_shape(2)[0]) : 1;
  return norm;
}

}  // namespace

void MergeStatisticsCuda::Run(const KernelCall& call) { RunGroup({&call, 1}); }

void MergeStatisticsCuda::RunGroup(std::span<const KernelCall> calls) {
  MergedNorms norms;
  int count = 0;
  for (const KernelCall& call : calls) {
    norms.norms[count++] = MakeMergedNorm(call);
    if (count < kMaxMergedNorms && &call != &calls.back()) continue;
    LaunchMergeStatistics(call.stream, norms, count);
    count = 0;
  }
}

}  // namespace thimble
