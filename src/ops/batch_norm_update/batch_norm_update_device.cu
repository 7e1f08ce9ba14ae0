#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/device/cuda/check.h"
#include "thimble/ops/batch_norm_update/batch_norm_update_device.h"

namespace thimble {
namespace {

// The channels of most layers in one round.
constexpr int kThreads = 128;

struct Statistics {
  float mean;
  float variance;
};

// The average over the parts, by their shares, of what of_part(index of the statistic) gives.
template <class OfPart>
__device__ float Average(const RunningNorm& norm, int channel, const OfPart& of_part) {
  float sum = 0;
#pragma unroll 8
  for (int part = 0; part < norm.parts; ++part) {
    const float share = part < norm.larger_parts ? norm.larger_share : norm.smaller_share;
    sum = fmaf(share, of_part(int64_t{part} * norm.channels + channel), sum);
  }
  return sum;
}

// Mean of the parts' means; mean of their variances plus variance of their means.
__device__ Statistics StatisticsOfBatch(const RunningNorm& norm, int channel) {
  if (norm.parts == 1) return {norm.mean[channel], norm.variance[channel]};
  const float mean = Average(norm, channel, [&](int64_t i) { return norm.mean[i]; });
  return {mean, Average(norm, channel, [&](int64_t i) {
            const float distance = norm.mean[i] - mean;
            return fmaf(distance, distance, norm.variance[i]);
          })};
}

// One block for each norm.
__global__ void __launch_bounds__(kThreads)
    BatchNormUpdateKernel(const __grid_constant__ RunningNorms norms) {
  const RunningNorm norm = norms.norms[blockIdx.x];
  for (int c = static_cast<int>(threadIdx.x); c < norm.channels; c += kThreads) {
    const Statistics batch = StatisticsOfBatch(norm, c);
    const float mean = norm.mean_share * batch.mean;
    const float variance = norm.variance_share * batch.variance;
    norm.next_mean[c] = fmaf(norm.kept, norm.running_mean[c], mean);
    norm.next_variance[c] = fmaf(norm.kept, norm.running_variance[c], variance);
  }
}

}  // namespace

void LaunchBatchNormUpdate(cudaStream_t stream, const RunningNorms& norms, int count) {
  if (count == 0) return;
  BatchNormUpdateKernel<<<static_cast<unsigned>(count), kThreads, 0, stream>>>(norms);
  THIMBLE_CUDA_LAUNCHED();
}

}  // namespace thimble
