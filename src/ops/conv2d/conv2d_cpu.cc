#include "thimble/ops/conv2d/conv2d_cpu.h"

#include "thimble/device/cpu/gemm/gemm.h"
#include "thimble/ops/conv2d/geometry.h"
#include "thimble/ops/conv2d/window_packer.h"

namespace thimble {
namespace {

size_t ScratchFor(const GemmShape& shape, const KernelLimits& limits) {
  return GemmScratchBytes(shape, static_cast<size_t>(limits.threads),
                          limits.scratch_bytes_per_thread);
}

template <class GeometryFunction>
Conv2dGeometry GeometryFor(const KernelCall& call, GeometryFunction geometry_of) {
  const Shape inputs[] = {call.in_shape(0), call.in_shape(1)};
  return geometry_of(OpCall{inputs, {}, call.attributes}).value();
}

WindowGrid WindowsOfInput(const Conv2dGeometry& g) {
  return {.height = g.height,
          .width = g.width,
          .channels = g.channels,
          .rows = g.out_height,
          .columns = g.out_width,
          .stride = g.stride,
          .top = -g.padding,
          .left = -g.padding,
          .taps_high = g.kernel_height,
          .taps_wide = g.kernel_width};
}

GemmShape ForwardShape(const Conv2dGeometry& g) {
  return {static_cast<size_t>(g.out_pixels()), static_cast<size_t>(g.out_channels),
          static_cast<size_t>(g.window_elements())};
}

GemmShape GradWeightShape(const Conv2dGeometry& g) {
  return {static_cast<size_t>(g.out_channels), static_cast<size_t>(g.window_elements()),
          static_cast<size_t>(g.out_pixels())};
}

}  // namespace

size_t Conv2dCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return ScratchFor(ForwardShape(Conv2dGeometryOf(call).value()), limits);
}

void Conv2dCpu::Run(const KernelCall& call) {
  const Conv2dGeometry g = GeometryFor(call, &Conv2dGeometryOf);
  const GemmShape shape = ForwardShape(g);
  const WindowPacker x(call.In<float>(0), WindowsOfInput(g));
  const TransposedPacker w(call.In<float>(1), shape.depth);
  const DenseRows y(call.Out<float>(0), shape.columns);
  Gemm({shape, x, w, y}, call.scratch, call.pool);
}

size_t Conv2dGradWeightCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return ScratchFor(GradWeightShape(Conv2dGradWeightGeometryOf(call).value()), limits);
}

void Conv2dGradWeightCpu::Run(const KernelCall& call) {
  const Conv2dGeometry g = GeometryFor(call, &Conv2dGradWeightGeometryOf);
  const GemmShape shape = GradWeightShape(g);
  const WindowPacker x(call.In<float>(0), WindowsOfInput(g));
  const TransposedPacker dy(call.In<float>(1), shape.rows);
  const DenseRows dw(call.Out<float>(0), shape.columns);
  Gemm({shape, dy, x, dw}, call.scratch, call.pool);
}

}  // namespace thimble
