// The GPU code of image_crop_flip.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "thimble/base/philox.h"

namespace thimble {

struct ImageBatch {
  int64_t batch, height, width, channels;
  const uint8_t* x;        // (B, H, W, C)
  const int32_t* samples;  // (B)
  const int32_t* epoch;    // (1)
};

// y (B, H, W, C) lies apart from in.x. `source` has the purpose kAugment.
void LaunchImageCropFlip(cudaStream_t stream, const RandomSource& source, const ImageBatch& in,
                         uint8_t* y);

}  // namespace thimble
