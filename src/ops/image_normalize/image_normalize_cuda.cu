#include <algorithm>

#include "thimble/device/cuda/elements.cuh"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/ops/image_normalize/image_normalize.h"

namespace thimble {
namespace {

// Channels of one launch. Their constants are kernel arguments, which are limited to 4 KiB.
constexpr int64_t kNormalizeChannels = 256;

struct ChannelConstants {
  int64_t count = 0;
  float mean[kNormalizeChannels] = {};
  float inverse[kNormalizeChannels] = {};  // 1 / standard deviation
};

// The constants stay in parameter memory (__grid_constant__) instead of being copied by each
// thread.
template <class Storage>
__global__ void __launch_bounds__(kElementThreads)
    ImageNormalizeKernel(const __grid_constant__ ChannelConstants constants, int64_t count,
                         int64_t channels, const uint8_t* x, Storage* y) {
  WaitForKernelsBefore();
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const int64_t c = i % constants.count;
    const int64_t place = i / constants.count * channels + c;
    StoreNumber((static_cast<float>(x[place]) - constants.mean[c]) * constants.inverse[c],
                y + place);
  }
}

// The first constants.count channels of x and y, both (pixels, channels).
void LaunchImageNormalize(cudaStream_t stream, const ChannelConstants& constants, int64_t pixels,
                          int64_t channels, const uint8_t* x, Numbers y) {
  const int64_t count = pixels * constants.count;
  if (count == 0) return;
  const int64_t blocks = std::min((count - 1) / kElementThreads + 1, kMaxElementBlocks);
  WithStorage(y.type, [&](auto storage) {
    using Storage = decltype(storage);
    ImageNormalizeKernel<Storage><<<static_cast<unsigned>(blocks), kElementThreads, 0, stream>>>(
        constants, count, channels, x, As<Storage>(y));
    THIMBLE_CUDA_LAUNCHED();
  });
}

}  // namespace

void ImageNormalizeCuda::Run(const KernelCall& call) {
  const Shape& x = call.in_shape(0);  // (B, H, W, C)
  const int64_t pixels = x[0] * x[1] * x[2];
  const std::vector<double>& mean = call.attributes.Floats("mean");
  const std::vector<double>& deviation = call.attributes.Floats("std");
  // Images have few channels: one round.
  for (int64_t first = 0; first < x[3]; first += kNormalizeChannels) {
    ChannelConstants constants;
    constants.count = std::min(kNormalizeChannels, x[3] - first);
    for (int64_t c = 0; c < constants.count; ++c) {
      constants.mean[c] = static_cast<float>(mean[static_cast<size_t>(first + c)]);
      constants.inverse[c] = static_cast<float>(1.0 / deviation[static_cast<size_t>(first + c)]);
    }
    LaunchImageNormalize(call.stream, constants, pixels, x[3], call.In<uint8_t>(0) + first,
                         NumbersOf(call.outputs[0]) + first);
  }
}

}  // namespace thimble
