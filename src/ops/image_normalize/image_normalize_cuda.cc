#include "thimble/ops/image_normalize/image_normalize_cuda.h"

#include <algorithm>

#include "thimble/ops/image_normalize/image_normalize_device.h"

namespace thimble {

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
                         call.Out<float>(0) + first);
  }
}

}  // namespace thimble
