#include <algorithm>

#include "thimble/device/cpu/gemm/pairs.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/ops/conv2d/conv2d.h"
#include "thimble/ops/conv2d/geometry.h"
#include "thimble/ops/conv2d/line_convolution.h"

namespace thimble {
namespace {

// Types of x and y.
struct ImageTypes {
  DType x;
  DType y;
};

LinePhase Windows(const Conv2dGeometry& g, const ImageTypes& types, bool pairs) {
  const int64_t line = g.out_width * g.out_channels;
  return {.grid = {.batch = g.batch,
                   .height = g.height,
                   .width = g.width,
                   .channels = pairs ? g.channels / 2 : g.channels,
                   .rows = g.out_height,
                   .columns = g.out_width,
                   .stride = g.stride,
                   .top = -g.padding,
                   .left = -g.padding,
                   .taps_high = g.kernel_height,
                   .taps_wide = g.kernel_width,
                   .short_images = !pairs && IsShortNumber(types.x),
                   .short_outputs = IsShortNumber(types.y),
                   .pairs = pairs},
          .pixels = {.first = 0,
                     .image_stride = g.out_height * line,
                     .line_stride = line,
                     .pixel_stride = g.out_channels}};
}

// conv2d, and with `added` conv2d_add.
void RunConvolution(const KernelCall& call, ConstNumbers added) {
  const Shape inputs[] = {call.in_shape(0), call.in_shape(1)};
  const Conv2dGeometry g = Conv2dGeometryOf({inputs, {}, call.attributes}).value();
  const bool pairs =
      MultipliesPairs() && CanBePaired(call.inputs[0].dtype, call.inputs[1].dtype, g.channels);
  const LinePhase windows = Windows(g, {call.inputs[0].dtype, call.outputs[0].dtype}, pairs);
  const LinePacker x = LinePacker::Of(call.inputs[0], g.width, g.channels, pairs);
  const TransposedPacker w(ElementsOf(call.inputs[1]), static_cast<size_t>(g.window_elements()));
  const auto weights = [&](size_t /*phase*/, const MatrixBlock& block, float* panel,
                           size_t stride) {
    if (pairs) return PackPairs(w, block, panel, stride);
    w(block, panel, stride);
  };
  RunLineConvolution(
      {{&windows, 1}, g.out_channels, x, weights, NumbersOf(call.outputs[0]), added, pairs},
      call.scratch, call.pool);
}

}  // namespace

size_t Conv2dCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  const Conv2dGeometry g = Conv2dGeometryOf(call).value();
  const auto bytes = [&](bool pairs) {
    const LinePhase windows = Windows(g, {call.input_type(0), call.output_type(0)}, pairs);
    return LineConvolutionScratchBytes({&windows, 1}, g.out_channels,
                                       static_cast<size_t>(limits.threads),
                                       limits.scratch_bytes_per_thread);
  };
  const bool can_pair = CanBePaired(call.input_type(0), call.input_type(1), g.channels);
  return can_pair ? std::max(bytes(false), bytes(true)) : bytes(false);
}

void Conv2dCpu::Run(const KernelCall& call) { RunConvolution(call, {}); }

void Conv2dAddCpu::Run(const KernelCall& call) {
  RunConvolution(call, ConstNumbersOf(call.inputs[2]));
}

}  // namespace thimble
