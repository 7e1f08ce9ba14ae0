// conv2d_grad_input on the CPU. Pixel h = first + stride * i of dx is reached only by the taps kh =
// tap + stride * t, from the output row i + shift - t. So for each residue `first` this is a
// convolution of dy with stride 1 and only those taps. Only padding is multiplied by zero.
#include <algorithm>
#include <array>
#include <span>

#include "thimble/device/cpu/gemm/pairs.h"
#include "thimble/device/cpu/packed_numbers.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/ops/conv2d/conv2d.h"
#include "thimble/ops/conv2d/geometry.h"
#include "thimble/ops/conv2d/grad_input.h"
#include "thimble/ops/conv2d/line_convolution.h"

namespace thimble {
namespace {

// One axis of the pixels of dx that are congruent modulo the stride.
struct PhaseAxis {
  int64_t first = 0;     // first pixel
  int64_t pixels = 0;    // number of pixels, `stride` apart
  int64_t last_tap = 0;  // taps of the kernel, from the last to the first, `stride` apart
  int64_t taps = 0;
  int64_t begin = 0;  // position in dy that the last tap connects to the first pixel
};

PhaseAxis MakePhaseAxis(int64_t first, int64_t size, int64_t kernel, const Conv2dGeometry& g) {
  PhaseAxis axis;
  axis.first = first;
  axis.pixels = (size - first + g.stride - 1) / g.stride;
  const int64_t first_tap = (first + g.padding) % g.stride;
  axis.taps = first_tap < kernel ? (kernel - 1 - first_tap) / g.stride + 1 : 0;
  axis.last_tap = first_tap + (axis.taps - 1) * g.stride;
  axis.begin = (first + g.padding - first_tap) / g.stride - (axis.taps - 1);
  return axis;
}

struct StridePhase {
  PhaseAxis rows;
  PhaseAxis columns;
};

// Types of dy and dx, and whether the channels of dy are read in pairs.
struct GradientTypes {
  DType dy;
  DType dx;
  bool pairs;
};

LinePhase WindowsOfOutputGradient(const Conv2dGeometry& g, const StridePhase& phase,
                                  const GradientTypes& types) {
  const int64_t line = g.width * g.channels;
  return {.grid = {.batch = g.batch,
                   .height = g.out_height,
                   .width = g.out_width,
                   .channels = types.pairs ? g.out_channels / 2 : g.out_channels,
                   .rows = phase.rows.pixels,
                   .columns = phase.columns.pixels,
                   .stride = 1,
                   .top = phase.rows.begin,
                   .left = phase.columns.begin,
                   .taps_high = phase.rows.taps,
                   .taps_wide = phase.columns.taps,
                   .short_images = !types.pairs && IsShortNumber(types.dy),
                   .short_outputs = IsShortNumber(types.dx),
                   .pairs = types.pairs},
          .pixels = {.first = phase.rows.first * line + phase.columns.first * g.channels,
                     .image_stride = g.height * line,
                     .line_stride = g.stride * line,
                     .pixel_stride = g.stride * g.channels}};
}

// Phases that are processed together: all of them, unless the stride is large.
struct PhaseGroup {
  std::array<StridePhase, kMaxLinePhases> phases;
  std::array<LinePhase, kMaxLinePhases> windows;
  size_t count = 0;
  std::span<const LinePhase> all() const { return {windows.data(), count}; }
};

template <class Visit>
void ForEachPhaseGroup(const Conv2dGeometry& g, const GradientTypes& types, Visit visit) {
  PhaseGroup group;
  const int64_t rows = std::min(g.stride, g.height);
  const int64_t columns = std::min(g.stride, g.width);
  for (int64_t index = 0; index < rows * columns; ++index) {
    const StridePhase phase{MakePhaseAxis(index / columns, g.height, g.kernel_height, g),
                            MakePhaseAxis(index % columns, g.width, g.kernel_width, g)};
    group.phases[group.count] = phase;
    group.windows[group.count++] = WindowsOfOutputGradient(g, phase, types);
    if (group.count < kMaxLinePhases && index + 1 < rows * columns) continue;
    visit(group);
    group.count = 0;
  }
}

// The weights of a phase as a matrix (taps * O, C), taps from the last to the first.
void PackPhaseWeights(const Elements& w, const Conv2dGeometry& g, const StridePhase& phase,
                      const MatrixBlock& block, float* panel, size_t stride) {
  for (size_t r = 0; r < block.rows; ++r, panel += stride) {
    const auto row = static_cast<int64_t>(block.row + r);
    const int64_t out_channel = row % g.out_channels;
    const int64_t tap = row / g.out_channels;
    const int64_t tap_row = phase.rows.last_tap - tap / phase.columns.taps * g.stride;
    const int64_t tap_column = phase.columns.last_tap - tap % phase.columns.taps * g.stride;
    const int64_t line = (out_channel * g.kernel_height + tap_row) * g.kernel_width + tap_column;
    DecodeElements(w, static_cast<size_t>(line * g.channels) + block.column, block.columns, panel);
  }
}

}  // namespace

size_t GradInputScratchBytes(const Conv2dGeometry& g, const GradInputTypes& types,
                             const KernelLimits& limits) {
  size_t bytes = 0;
  for (const bool pairs : {false, true}) {
    if (pairs && !CanBePaired(types.w, types.dy, g.out_channels)) break;
    ForEachPhaseGroup(g, {types.dy, types.dx, pairs}, [&](const PhaseGroup& group) {
      bytes = std::max(bytes, LineConvolutionScratchBytes(group.all(), g.channels,
                                                          static_cast<size_t>(limits.threads),
                                                          limits.scratch_bytes_per_thread));
    });
  }
  return bytes;
}

void RunGradInput(const Conv2dGeometry& g, const TensorView& w_view, const TensorView& dy_view,
                  Numbers dx, std::span<std::byte> scratch, ThreadPool& pool) {
  const Elements w = ElementsOf(w_view);
  const bool pairs =
      MultipliesPairs() && CanBePaired(w.numbers.type, dy_view.dtype, g.out_channels);
  const LinePacker dy = LinePacker::Of(dy_view, g.out_width, g.out_channels, pairs);
  ForEachPhaseGroup(g, {dy_view.dtype, dx.type, pairs}, [&](const PhaseGroup& group) {
    const auto weights = [&](size_t phase, const MatrixBlock& block, float* panel, size_t stride) {
      const auto pack = [&](const MatrixBlock& rows, float* to, size_t to_stride) {
        PackPhaseWeights(w, g, group.phases[phase], rows, to, to_stride);
      };
      if (pairs) return PackPairs(pack, block, panel, stride);
      pack(block, panel, stride);
    };
    RunLineConvolution({group.all(), g.channels, dy, weights, dx, {}, pairs}, scratch, pool);
  });
}

size_t Conv2dGradInputCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return GradInputScratchBytes(Conv2dGradInputGeometryOf(call).value(),
                               {call.input_type(0), call.input_type(1), call.output_type(0)},
                               limits);
}

void Conv2dGradInputCpu::Run(const KernelCall& call) {
  const Shape inputs[] = {call.in_shape(0), call.in_shape(1)};
  RunGradInput(Conv2dGradInputGeometryOf({inputs, {}, call.attributes}).value(), call.inputs[0],
               call.inputs[1], NumbersOf(call.outputs[0]), call.scratch, call.pool);
}

}  // namespace thimble
