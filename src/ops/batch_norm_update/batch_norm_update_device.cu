#include <cuda_runtime.h>

#include "thimble/device/cuda/check.h"
#include "thimble/ops/batch_norm_update/batch_norm_update_device.h"

namespace thimble {
namespace {

// The channels of most layers in one round.
constexpr int kThreads = 128;

// One block for each norm.
__global__ void __launch_bounds__(kThreads)
    BatchNormUpdateKernel(const __grid_constant__ RunningNorms norms) {
  const RunningNorm norm = norms.norms[blockIdx.x];
  for (int c = static_cast<int>(threadIdx.x); c < norm.channels; c += kThreads) {
    const float mean = norm.mean_share * norm.mean[c];
    const float variance = norm.variance_share * norm.variance[c];
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
