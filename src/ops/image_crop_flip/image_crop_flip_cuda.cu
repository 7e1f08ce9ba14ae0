#include <cuda_runtime.h>

#include <algorithm>
#include <limits>

#include "thimble/base/augmentation.h"
#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/ops/image_crop_flip/image_crop_flip.h"

namespace thimble {
namespace {

struct ImageBatch {
  int64_t batch, height, width, channels;
  const uint8_t* x;        // (B, H, W, C)
  const int32_t* samples;  // (B)
  const int32_t* epoch;    // (1)

  __host__ __device__ int64_t image_bytes() const { return height * width * channels; }
};

// Three bytes per thread in an image of 32 x 32 x 3.
constexpr int kCropThreads = 1024;
constexpr int64_t kMaxCropBlocks = 1 << 16;  // blocks loop over the remaining images

// A block for each image; all its threads make the same draw. Index counts the bytes of an image: a
// division of 64 bits takes several times as long as one of 32.
template <class Index>
__global__ void __launch_bounds__(kCropThreads)
    ImageCropFlipKernel(RandomSource source, ImageBatch in, uint8_t* y) {
  WaitForKernelsBefore();
  const int64_t image_bytes = in.image_bytes();
  const auto channels = static_cast<Index>(in.channels);
  const auto width = static_cast<Index>(in.width);
  const auto epoch = static_cast<uint32_t>(in.epoch[0]);
  for (int64_t b = blockIdx.x; b < in.batch; b += gridDim.x) {
    const CropFlip draw = DrawCropFlip(source, epoch, static_cast<uint32_t>(in.samples[b]));
    const uint8_t* from = in.x + b * image_bytes;
    uint8_t* to = y + b * image_bytes;
    for (Index i = threadIdx.x; i < static_cast<Index>(image_bytes); i += kCropThreads) {
      const Index place = i / channels;
      const int64_t pixel = SourcePixel(draw, in.height, in.width, place / width, place % width);
      to[i] = from[pixel * in.channels + i % channels];
    }
  }
}

}  // namespace

void ImageCropFlipCuda::Run(const KernelCall& call) {
  const RandomSource source(static_cast<uint64_t>(call.attributes.Int("seed")),
                            RandomPurpose::kAugment);
  const Shape& x = call.in_shape(0);  // (B, H, W, C)
  const ImageBatch in{
      x[0], x[1], x[2], x[3], call.In<uint8_t>(0), call.In<int32_t>(1), call.In<int32_t>(2)};
  if (in.batch * in.channels == 0) return;
  const auto blocks = static_cast<unsigned>(std::min(in.batch, kMaxCropBlocks));
  const bool small = in.image_bytes() <= std::numeric_limits<int32_t>::max();
  const auto kernel = small ? ImageCropFlipKernel<uint32_t> : ImageCropFlipKernel<uint64_t>;
  kernel<<<blocks, kCropThreads, 0, call.stream>>>(source, in, call.Out<uint8_t>(0));
  THIMBLE_CUDA_LAUNCHED();
}

}  // namespace thimble
