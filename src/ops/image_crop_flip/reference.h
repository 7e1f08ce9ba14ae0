// image_crop_flip as a formula.
#pragma once

#include "thimble/base/augmentation.h"
#include "thimble/graph/reference.h"

namespace thimble {

struct ImageCropFlipReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const Shape& x = call.in_shape(0);  // (B, H, W, C)
    const RandomSource source(static_cast<uint64_t>(call.op.attributes.Int("seed")),
                              RandomPurpose::kAugment);
    const auto epoch = static_cast<uint32_t>(call.template InAs<int32_t>(2)[0]);
    for (int64_t i = 0; i < x.elements(); ++i) {
      const int64_t channel = i % x[3];
      const int64_t column = i / x[3] % x[2];
      const int64_t row = i / x[3] / x[2] % x[1];
      const int64_t b = i / x[3] / x[2] / x[1];
      const auto sample = static_cast<uint32_t>(call.template InAs<int32_t>(1)[b]);
      const CropFlip draw = DrawCropFlip(source, epoch, sample);
      const int64_t pixel = b * x[1] * x[2] + SourcePixel(draw, x[1], x[2], row, column);
      call.template OutAs<uint8_t>(0)[i] = call.template InAs<uint8_t>(0)[pixel * x[3] + channel];
    }
  }
};

}  // namespace thimble
