#include "thimble/ops/avg_pool2d/avg_pool2d_cuda.h"

#include "thimble/ops/avg_pool2d/avg_pool2d_device.h"

namespace thimble {
namespace {

// `x` has the image's shape, `y` the pooled one; both (B, H, W, C).
PoolGeometry GeometryOf(const Attributes& attributes, const Shape& x, const Shape& y) {
  const PoolWindow window{attributes.Int("kernel"), attributes.Int("stride")};
  const double factor = 1.0 / static_cast<double>(window.kernel * window.kernel);
  return {window, static_cast<float>(factor), x[0], x[1], x[2], x[3], y[1], y[2]};
}

}  // namespace

void AvgPool2dCuda::Run(const KernelCall& call) {
  LaunchAvgPool2d(call.stream, GeometryOf(call.attributes, call.in_shape(0), call.out_shape(0)),
                  call.In<float>(0), call.Out<float>(0));
}

void AvgPool2dGradCuda::Run(const KernelCall& call) {
  LaunchAvgPool2dGrad(call.stream, GeometryOf(call.attributes, call.out_shape(0), call.in_shape(0)),
                      call.In<float>(0), call.Out<float>(0));
}

}  // namespace thimble
