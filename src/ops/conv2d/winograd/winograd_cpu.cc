#include "thimble/ops/conv2d/winograd/winograd_cpu.h"

#include <algorithm>
#include <utility>

#include "thimble/ops/conv2d/geometry.h"
#include "thimble/ops/conv2d/winograd/convolution.h"
#include "thimble/ops/conv2d/winograd/weight_gradient.h"

namespace thimble {
namespace {

// With fewer channels than half a vector, the transforms are not worthwhile.
constexpr int64_t kMinChannels = 8;

std::string_view DeclinesGeometry(const Conv2dGeometry& g) {
  if (g.kernel_height != 3 || g.kernel_width != 3) return "filters are not 3 x 3";
  if (g.stride != 1) return "the stride is not 1";
  if (g.padding > 2) return "more than 2 pixels of padding";
  if (g.channels < kMinChannels || g.out_channels < kMinChannels) return "fewer than 8 channels";
  if (g.batch == 0) return "an empty batch";
  return {};
}

template <class GeometryFunction>
Conv2dGeometry GeometryFor(const KernelCall& call, GeometryFunction geometry_of) {
  const Shape inputs[] = {call.in_shape(0), call.in_shape(1)};
  return geometry_of(OpCall{inputs, {}, call.attributes}).value();
}

int64_t TilesFor(int64_t outputs) { return (outputs + kWinogradOutputs - 1) / kWinogradOutputs; }

TiledImages InputOf(const Conv2dGeometry& g) {
  return {g.height,   g.width,   g.channels, TilesFor(g.out_height), TilesFor(g.out_width),
          -g.padding, -g.padding};
}

TiledImages OutputOf(const Conv2dGeometry& g) {
  return {g.out_height,
          g.out_width,
          g.out_channels,
          TilesFor(g.out_height),
          TilesFor(g.out_width),
          0,
          0};
}

// The geometry of the convolution from dy to dx.
Conv2dGeometry Backward(const Conv2dGeometry& g) {
  Conv2dGeometry back = g;
  std::swap(back.height, back.out_height);
  std::swap(back.width, back.out_width);
  std::swap(back.channels, back.out_channels);
  back.padding = 2 - g.padding;
  return back;
}

WinogradShape ShapeOf(const Conv2dGeometry& g, DType result) {
  return {static_cast<size_t>(g.batch * TilesFor(g.out_height) * TilesFor(g.out_width)),
          static_cast<size_t>(g.channels), static_cast<size_t>(g.out_channels),
          IsShortNumber(result)};
}

size_t ConvolutionScratch(const Conv2dGeometry& g, DType output, const KernelLimits& limits) {
  const auto threads = static_cast<size_t>(limits.threads);
  return ChooseWinogradBlocks(ShapeOf(g, output), threads,
                              threads * limits.scratch_bytes_per_thread)
      .ScratchBytes(threads);
}

void Convolve(const KernelCall& call, const Conv2dGeometry& g, ConstNumbers input, Packer weights,
              ConstNumbers added) {
  RunWinogradConvolution({.input = input,
                          .input_grid = InputOf(g),
                          .weights = weights,
                          .output = NumbersOf(call.outputs[0]),
                          .output_grid = OutputOf(g),
                          .added = added,
                          .batch = static_cast<size_t>(g.batch)},
                         call.scratch, call.pool);
}

// w (O, 3, 3, C) rotated: (9 * O, C), taps from the last to the first.
class TurnedWeightPacker {
 public:
  TurnedWeightPacker(ConstNumbers w, const Conv2dGeometry& g)
      : w_(w),
        channels_(static_cast<size_t>(g.channels)),
        out_channels_(static_cast<size_t>(g.out_channels)) {}

  void operator()(const MatrixBlock& block, float* panel, size_t stride) const {
    // The rows of one tap at a time; they are equally far apart.
    for (size_t r = 0; r < block.rows;) {
      const size_t row = block.row + r;
      const size_t tap = kWinogradTaps - 1 - row / out_channels_;
      const size_t out_channel = row % out_channels_;
      const size_t rows = std::min(block.rows - r, out_channels_ - out_channel);
      const size_t line = out_channel * kWinogradTaps + tap;
      DecodeNumberRows(w_ + (line * channels_ + block.column),
                       {rows, block.columns, kWinogradTaps * channels_, stride},
                       panel + r * stride);
      r += rows;
    }
  }

 private:
  ConstNumbers w_;
  size_t channels_;
  size_t out_channels_;
};

void ConvolveForward(const KernelCall& call, ConstNumbers added) {
  const Conv2dGeometry g = GeometryFor(call, &Conv2dGeometryOf);
  const TransposedPacker weights(ConstNumbersOf(call.inputs[1]),
                                 static_cast<size_t>(g.window_elements()));
  Convolve(call, g, ConstNumbersOf(call.inputs[0]), weights, added);
}

}  // namespace

std::string_view Conv2dWinogradCpu::Declines(const OpCall& call) {
  return DeclinesGeometry(Conv2dGeometryOf(call).value());
}

size_t Conv2dWinogradCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return ConvolutionScratch(Conv2dGeometryOf(call).value(), call.output_type(0), limits);
}

void Conv2dWinogradCpu::Run(const KernelCall& call) { ConvolveForward(call, {}); }

void Conv2dAddWinogradCpu::Run(const KernelCall& call) {
  ConvolveForward(call, ConstNumbersOf(call.inputs[2]));
}

std::string_view Conv2dGradInputWinogradCpu::Declines(const OpCall& call) {
  return DeclinesGeometry(Conv2dGradInputGeometryOf(call).value());
}

size_t Conv2dGradInputWinogradCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return ConvolutionScratch(Backward(Conv2dGradInputGeometryOf(call).value()), call.output_type(0),
                            limits);
}

void Conv2dGradInputWinogradCpu::Run(const KernelCall& call) {
  const Conv2dGeometry g = GeometryFor(call, &Conv2dGradInputGeometryOf);
  const TurnedWeightPacker weights(ConstNumbersOf(call.inputs[0]), g);
  Convolve(call, Backward(g), ConstNumbersOf(call.inputs[1]), weights, {});
}

std::string_view Conv2dGradWeightWinogradCpu::Declines(const OpCall& call) {
  return DeclinesGeometry(Conv2dGradWeightGeometryOf(call).value());
}

size_t Conv2dGradWeightWinogradCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  const auto threads = static_cast<size_t>(limits.threads);
  const WinogradShape shape =
      ShapeOf(Conv2dGradWeightGeometryOf(call).value(), call.output_type(0));
  return ChooseWinogradGradientBlocks(shape, threads, threads * limits.scratch_bytes_per_thread)
      .ScratchBytes(threads);
}

void Conv2dGradWeightWinogradCpu::Run(const KernelCall& call) {
  const Conv2dGeometry g = GeometryFor(call, &Conv2dGradWeightGeometryOf);
  RunWinogradWeightGradient({.input = ConstNumbersOf(call.inputs[0]),
                             .input_grid = InputOf(g),
                             .output_gradient = ConstNumbersOf(call.inputs[1]),
                             .output_grid = OutputOf(g),
                             .weight_gradient = NumbersOf(call.outputs[0]),
                             .batch = static_cast<size_t>(g.batch)},
                            call.scratch, call.pool);
}

}  // namespace thimble
