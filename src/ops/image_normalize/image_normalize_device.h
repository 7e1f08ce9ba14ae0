// The GPU code of image_normalize.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace thimble {

// Channels of one launch. Their constants travel as its arguments, which may have 4 KiB.
inline constexpr int64_t kNormalizeChannels = 256;

struct ChannelConstants {
  int64_t count = 0;
  float mean[kNormalizeChannels] = {};
  float inverse[kNormalizeChannels] = {};  // 1 / standard deviation
};

// The first constants.count channels of x and y, both (pixels, channels).
void LaunchImageNormalize(cudaStream_t stream, const ChannelConstants& constants, int64_t pixels,
                          int64_t channels, const uint8_t* x, float* y);

}  // namespace thimble
