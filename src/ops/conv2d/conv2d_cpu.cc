#include <array>

#include "thimble/ops/add/add.h"
#include "thimble/ops/conv2d/conv2d.h"
#include "thimble/ops/conv2d/geometry.h"
#include "thimble/ops/conv2d/line_convolution.h"

namespace thimble {
namespace {

LinePhase Windows(const Conv2dGeometry& g, float* y) {
  const int64_t line = g.out_width * g.out_channels;
  return {.grid = {.batch = g.batch,
                   .height = g.height,
                   .width = g.width,
                   .channels = g.channels,
                   .rows = g.out_height,
                   .columns = g.out_width,
                   .stride = g.stride,
                   .top = -g.padding,
                   .left = -g.padding,
                   .taps_high = g.kernel_height,
                   .taps_wide = g.kernel_width},
          .out = {.data = y,
                  .first = 0,
                  .image_stride = g.out_height * line,
                  .line_stride = line,
                  .pixel_stride = g.out_channels}};
}

void AddOther(const KernelCall& call) {
  const std::array<TensorView, 2> inputs = {call.outputs[0], call.inputs[2]};
  AddCpu::Run({inputs, call.outputs, call.attributes, {}, call.pool, call.stream});
}

}  // namespace

size_t Conv2dCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  const Conv2dGeometry g = Conv2dGeometryOf(call).value();
  const LinePhase windows = Windows(g, nullptr);
  return LineConvolutionScratchBytes({&windows, 1}, g.out_channels,
                                     static_cast<size_t>(limits.threads),
                                     limits.scratch_bytes_per_thread);
}

void Conv2dCpu::Run(const KernelCall& call) {
  const Shape inputs[] = {call.in_shape(0), call.in_shape(1)};
  const Conv2dGeometry g = Conv2dGeometryOf({inputs, {}, call.attributes}).value();
  const LinePhase windows = Windows(g, call.Out<float>(0));
  const LinePacker x(call.In<float>(0), g.width, g.channels);
  const TransposedPacker w(call.In<float>(1), static_cast<size_t>(g.window_elements()));
  const auto weights = [&](size_t /*phase*/, const MatrixBlock& block, float* panel,
                           size_t stride) { w(block, panel, stride); };
  RunLineConvolution({{&windows, 1}, g.out_channels, x, weights}, call.scratch, call.pool);
}

void Conv2dAddCpu::Run(const KernelCall& call) {
  Conv2dCpu::Run(call);
  AddOther(call);
}

void Conv2dAddWinogradCpu::Run(const KernelCall& call) {
  Conv2dWinogradCpu::Run(call);
  AddOther(call);
}

}  // namespace thimble
