#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/base/nearly_equal_parts.h"
#include "thimble/device/cuda/check.h"
#include "thimble/ops/merge_statistics/merge_statistics_device.h"

namespace thimble {
namespace {

// The channels of most layers in one round.
constexpr int kThreads = 128;

struct Statistics {
  float mean;
  float variance;
};

// Those of `before` samples joined with those of `samples` more.
__device__ Statistics Join(const Statistics& old, int64_t before, const Statistics& more,
                           int64_t samples) {
  const double all = static_cast<double>(before + samples);
  const auto kept = static_cast<float>(static_cast<double>(before) / all);
  const auto share = static_cast<float>(static_cast<double>(samples) / all);
  const float delta = more.mean - old.mean;
  const float within = fmaf(kept, old.variance, share * more.variance);
  return {fmaf(share, delta, old.mean), fmaf(kept * share * delta, delta, within)};
}

// One block for each norm.
__global__ void __launch_bounds__(kThreads)
    MergeStatisticsKernel(const __grid_constant__ MergedNorms norms) {
  const MergedNorm norm = norms.norms[blockIdx.x];
  const NearlyEqualParts groups{norm.samples, norm.groups};
  const int seen = *norm.seen;
  for (int c = static_cast<int>(threadIdx.x); c < norm.channels; c += kThreads) {
    Statistics sum = {norm.mean[c], norm.variance[c]};
    if (seen != 0) {
      sum = Join({norm.mean_sum[c], norm.variance_sum[c]}, seen, sum, groups.Size(0));
    }
    for (int group = 1; group < norm.groups; ++group) {
      const int64_t i = int64_t{group} * norm.channels + c;
      sum = Join(sum, seen + groups.Begin(group), {norm.mean[i], norm.variance[i]},
                 groups.Size(group));
    }
    norm.next_mean[c] = sum.mean;
    norm.next_variance[c] = sum.variance;
  }
}

}  // namespace

void LaunchMergeStatistics(cudaStream_t stream, const MergedNorms& norms, int count) {
  if (count == 0) return;
  MergeStatisticsKernel<<<static_cast<unsigned>(count), kThreads, 0, stream>>>(norms);
  THIMBLE_CUDA_LAUNCHED();
}

}  // namespace thimble
