#include <algorithm>

#include "thimble/device/cuda/elements.cuh"
#include "thimble/ops/image_normalize/image_normalize_device.h"

namespace thimble {
namespace {

// The constants stay where arguments lie (__grid_constant__), instead of being copied by each
// thread.
__global__ void __launch_bounds__(kElementThreads)
    ImageNormalizeKernel(const __grid_constant__ ChannelConstants constants, int64_t count,
                         int64_t channels, const uint8_t* x, float* y) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const int64_t c = i % constants.count;
    const int64_t place = i / constants.count * channels + c;
    y[place] = (static_cast<float>(x[place]) - constants.mean[c]) * constants.inverse[c];
  }
}

}  // namespace

void LaunchImageNormalize(cudaStream_t stream, const ChannelConstants& constants, int64_t pixels,
                          int64_t channels, const uint8_t* x, float* y) {
  const int64_t count = pixels * constants.count;
  if (count == 0) return;
  const int64_t blocks = std::min((count - 1) / kElementThreads + 1, kMaxElementBlocks);
  ImageNormalizeKernel<<<static_cast<unsigned>(blocks), kElementThreads, 0, stream>>>(
      constants, count, channels, x, y);
  THIMBLE_CUDA_LAUNCHED();
}

}  // namespace thimble
