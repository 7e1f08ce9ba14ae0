// image_crop_flip: augments training images: each is padded, cropped and mirrored as drawn for
// (seed, epoch, sample); base/augmentation.h has the random draw. Cropping moves bytes, so y cannot
// overwrite x.
#include "thimble/ops/image_crop_flip/image_crop_flip.h"

#include "thimble/base/augmentation.h"
#include "thimble/graph/op_def.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

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

Result<std::vector<Shape>> ImageCropFlipShapes(const OpCall& call) {
  const Shape& x = call.inputs[0];
  THIMBLE_TRY(RequireRank("x", x, 4, "(B, H, W, C)"));
  THIMBLE_TRY(RequireShape("samples", call.inputs[1], Shape{x[0]}));
  THIMBLE_TRY(RequireShape("epoch", call.inputs[2], Shape{1}));
  if (x[1] <= kCropPadding || x[2] <= kCropPadding) {
    return BadInput(fmt::format("an image of {} by {} is too small to reflect {} pixels", x[1],
                                x[2], kCropPadding));
  }
  return std::vector<Shape>{x};
}

}  // namespace

OpDef Make_image_crop_flip() {
  return OpDef("image_crop_flip")
      .Input("x", DType::kU8)
      .Input("samples", DType::kI32)  // index of each image in the data set
      .Input("epoch", DType::kI32)
      .Output("y", DType::kU8)
      .Attribute("seed", int64_t{0})
      .ShapeRule(ImageCropFlipShapes)
      .NoGradient("pixels are not differentiated")
      .Flops([](const OpCall&) -> int64_t { return 0; })
      .CpuKernel<ImageCropFlipCpu>("ImageCropFlipCpu")
      .CudaKernel<ImageCropFlipCuda>("ImageCropFlipCuda")
      .Reference<ImageCropFlipReference>();
}

}  // namespace thimble
