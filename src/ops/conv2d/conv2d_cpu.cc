#include "thimble/ops/conv2d/conv2d.h"
#include "thimble/ops/conv2d/geometry.h"
#include "thimble/ops/conv2d/line_convolution.h"

namespace thimble {
namespace {

LinePhase Windows(const Conv2dGeometry& g, DType x, DType y) {
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
                   .taps_wide = g.kernel_width,
                   .short_images = IsShortNumber(x),
                   .short_outputs = IsShortNumber(y)},
          .pixels = {.first = 0,
                     .image_stride = g.out_height * line,
                     .line_stride = line,
                     .pixel_stride = g.out_channels}};
}

// conv2d, and with `added` conv2d_add.
void RunConvolution(const KernelCall& call, ConstNumbers added) {
  const Shape inputs[] = {call.in_shape(0), call.in_shape(1)};
  const Conv2dGeometry g = Conv2dGeometryOf({inputs, {}, call.attributes}).value();
  const LinePhase windows = Windows(g, call.inputs[0].dtype, call.outputs[0].dtype);
  const LinePacker x(ConstNumbersOf(call.inputs[0]), g.width, g.channels);
  const TransposedPacker w(ConstNumbersOf(call.inputs[1]),
                           static_cast<size_t>(g.window_elements()));
  const auto weights = [&](size_t /*phase*/, const MatrixBlock& block, float* panel,
                           size_t stride) { w(block, panel, stride); };
  RunLineConvolution({{&windows, 1}, g.out_channels, x, weights, NumbersOf(call.outputs[0]), added},
                     call.scratch, call.pool);
}

}  // namespace

size_t Conv2dCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  const Conv2dGeometry g = Conv2dGeometryOf(call).value();
  const LinePhase windows = Windows(g, call.input_type(0), call.output_type(0));
  return LineConvolutionScratchBytes({&windows, 1}, g.out_channels,
                                     static_cast<size_t>(limits.threads),
                                     limits.scratch_bytes_per_thread);
}

void Conv2dCpu::Run(const KernelCall& call) { RunConvolution(call, {}); }

void Conv2dAddCpu::Run(const KernelCall& call) {
  RunConvolution(call, ConstNumbersOf(call.inputs[2]));
}

}  // namespace thimble
