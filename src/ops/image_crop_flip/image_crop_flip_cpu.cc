#include "thimble/base/augmentation.h"
#include "thimble/device/cpu/thread_pool.h"
#include "thimble/ops/image_crop_flip/image_crop_flip.h"

namespace thimble {

void ImageCropFlipCpu::Run(const KernelCall& call) {
  const Shape& shape = call.in_shape(0);  // (B, H, W, C)
  const int64_t image_bytes = shape[1] * shape[2] * shape[3];
  const uint8_t* x = call.In<uint8_t>(0);
  const int32_t* samples = call.In<int32_t>(1);
  const auto epoch = static_cast<uint32_t>(call.In<int32_t>(2)[0]);
  uint8_t* y = call.Out<uint8_t>(0);
  const RandomSource source(static_cast<uint64_t>(call.attributes.Int("seed")),
                            RandomPurpose::kAugment);
  call.pool.Run(static_cast<size_t>(shape[0]), [&](size_t image, size_t /*thread*/) {
    const CropFlip draw = DrawCropFlip(source, epoch, static_cast<uint32_t>(samples[image]));
    const int64_t place = static_cast<int64_t>(image) * image_bytes;
    CropFlipImage(draw, shape[1], shape[2], shape[3], x + place, y + place);
  });
}

}  // namespace thimble
