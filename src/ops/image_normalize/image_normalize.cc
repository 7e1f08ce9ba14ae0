// image_normalize: pixels as bytes to floats, y = (x - mean[c]) / std[c]; mean and std in 0..255.
#include "thimble/ops/image_normalize/image_normalize.h"

#include "thimble/graph/op_def.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

struct ImageNormalizeReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const std::vector<double>& mean = call.op.attributes.Floats("mean");
    const std::vector<double>& deviation = call.op.attributes.Floats("std");
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      const size_t channel = static_cast<size_t>(i) % mean.size();
      const double pixel = call.template InAs<uint8_t>(0)[i];
      call.Out(0)[i] = T((pixel - mean[channel]) / deviation[channel]);
    }
  }
};

Result<std::vector<Shape>> ImageNormalizeShapes(const OpCall& call) {
  const Shape& x = call.inputs[0];
  THIMBLE_TRY(RequireRank("x", x, 4, "(B, H, W, C)"));
  for (const char* name : {"mean", "std"}) {
    const std::vector<double>& constants = call.attributes.Floats(name);
    if (static_cast<int64_t>(constants.size()) != x[3]) {
      return BadInput(
          fmt::format("{} has {} numbers, expected one for each of the {} channels of 'x'", name,
                      constants.size(), x[3]));
    }
  }
  for (double deviation : call.attributes.Floats("std")) {
    if (!(deviation > 0)) return BadInput(fmt::format("std has {}, expected > 0", deviation));
  }
  return std::vector<Shape>{x};
}

}  // namespace

OpDef Make_image_normalize() {
  return OpDef("image_normalize")
      .Input("x", DType::kU8)
      .Output("y")
      .Attribute("mean", std::vector<double>{})
      .Attribute("std", std::vector<double>{})
      .ShapeRule(ImageNormalizeShapes)
      .NoGradient("pixels are not differentiated")
      .Flops(PerOutputElement(2))
      .CpuKernel<ImageNormalizeCpu>("ImageNormalizeCpu")
      .CudaKernel<ImageNormalizeCuda>("ImageNormalizeCuda")
      .Reference<ImageNormalizeReference>();
}

}  // namespace thimble
