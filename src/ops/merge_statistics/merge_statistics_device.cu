#include <cuda_runtime.h>

#include "thimble/device/cuda/check.h"
#include "thimble/ops/merge_statistics/merge_statistics_device.h"

namespace thimble {
namespace {

// The channels of most layers in one round.
constexpr int kThreads = 128;

__device__ void MergeOne(const MergedNorm& norm, float kept, float share, int i) {
  const float old_mean = norm.mean_sum[i];
  const float delta = norm.mean[i] - old_mean;
  const float within = fmaf(kept, norm.variance_sum[i], share * norm.variance[i]);
  norm.next_mean[i] = fmaf(share, delta, old_mean);
  norm.next_variance[i] = fmaf(kept * share * delta, delta, within);
}

// One block for each norm.
__global__ void __launch_bounds__(kThreads)
    MergeStatisticsKernel(const __grid_constant__ MergedNorms norms) {
  const MergedNorm norm = norms.norms[blockIdx.x];
  const int seen = *norm.seen;
  const double all = static_cast<double>(seen) + norm.samples;
  const auto kept = static_cast<float>(seen / all);
  const auto share = static_cast<float>(norm.samples / all);
  for (int i = static_cast<int>(threadIdx.x); i < norm.elements; i += kThreads) {
    if (seen != 0) {
      MergeOne(norm, kept, share, i);
    } else {
      norm.next_mean[i] = norm.mean[i];
      norm.next_variance[i] = norm.variance[i];
    }
  }
}

}  // namespace

void LaunchMergeStatistics(cudaStream_t stream, const MergedNorms& norms, int count) {
  if (count == 0) return;
  MergeStatisticsKernel<<<static_cast<unsigned>(count), kThreads, 0, stream>>>(norms);
  THIMBLE_CUDA_LAUNCHED();
}

}  // namespace thimble
