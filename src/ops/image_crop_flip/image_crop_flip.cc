// image_crop_flip: training images as the network sees them, each cut out of its padded self and
// mirrored as drawn for (seed, epoch, sample); base/augmentation.h has the draw. A window moves
// bytes, so y cannot lie where x is.
#include "thimble/base/augmentation.h"
#include "thimble/graph/op_def.h"
#include "thimble/ops/image_crop_flip/image_crop_flip_cpu.h"
#include "thimble/ops/image_crop_flip/image_crop_flip_cuda.h"
#include "thimble/ops/image_crop_flip/reference.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

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
      .Kernels({
#include "thimble/ops/image_crop_flip/kernels.inc"
      })
      .Reference<ImageCropFlipReference>();
}

}  // namespace thimble
