#include "thimble/ops/image_crop_flip/image_crop_flip_cuda.h"

#include "thimble/ops/image_crop_flip/image_crop_flip_device.h"

namespace thimble {

void ImageCropFlipCuda::Run(const KernelCall& call) {
  const Shape& x = call.in_shape(0);  // (B, H, W, C)
  const RandomSource source(static_cast<uint64_t>(call.attributes.Int("seed")),
                            RandomPurpose::kAugment);
  LaunchImageCropFlip(
      call.stream, source,
      {x[0], x[1], x[2], x[3], call.In<uint8_t>(0), call.In<int32_t>(1), call.In<int32_t>(2)},
      call.Out<uint8_t>(0));
}

}  // namespace thimble
