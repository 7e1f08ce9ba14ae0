#include <cuda_runtime.h>

#include <algorithm>

#include "thimble/base/augmentation.h"
#include "thimble/device/cuda/check.h"
#include "thimble/ops/image_crop_flip/image_crop_flip_device.h"

namespace thimble {
namespace {

// Three bytes for each thread in an image of 32 x 32 x 3.
constexpr int kThreads = 1024;
constexpr int64_t kMaxBlocks = 1 << 16;  // the rest is done in further rounds

// A block for each image; all its threads make the same draw.
__global__ void __launch_bounds__(kThreads)
    ImageCropFlipKernel(RandomSource source, ImageBatch in, uint8_t* y) {
  const int64_t image_bytes = in.height * in.width * in.channels;
  const auto epoch = static_cast<uint32_t>(in.epoch[0]);
  for (int64_t b = blockIdx.x; b < in.batch; b += gridDim.x) {
    const CropFlip draw = DrawCropFlip(source, epoch, static_cast<uint32_t>(in.samples[b]));
    const uint8_t* from = in.x + b * image_bytes;
    uint8_t* to = y + b * image_bytes;
    for (int64_t i = threadIdx.x; i < image_bytes; i += kThreads) {
      const int64_t place = i / in.channels;
      const int64_t pixel =
          SourcePixel(draw, in.height, in.width, place / in.width, place % in.width);
      to[i] = from[pixel * in.channels + i % in.channels];
    }
  }
}

}  // namespace

void LaunchImageCropFlip(cudaStream_t stream, const RandomSource& source, const ImageBatch& in,
                         uint8_t* y) {
  if (in.batch * in.channels == 0) return;
  const auto blocks = static_cast<unsigned>(std::min(in.batch, kMaxBlocks));
  ImageCropFlipKernel<<<blocks, kThreads, 0, stream>>>(source, in, y);
  THIMBLE_CUDA_LAUNCHED();
}

}  // namespace thimble
