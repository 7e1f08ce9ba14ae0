// conv2d_grad_input on the CPU. Pixel h = first + stride * i of dx is reached by the taps
// kh = tap + stride * t only, from the output row i + shift - t: for each residue `first`, a
// convolution of dy with stride 1 and its own few taps. Nothing is multiplied by zero but padding.
#include <algorithm>

#include "thimble/device/cpu/gemm/gemm.h"
#include "thimble/ops/conv2d/conv2d_cpu.h"
#include "thimble/ops/conv2d/geometry.h"
#include "thimble/ops/conv2d/window_packer.h"

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

struct Phase {
  PhaseAxis rows;
  PhaseAxis columns;
};

template <class Visit>
void ForEachPhase(const Conv2dGeometry& g, Visit visit) {
  for (int64_t row = 0; row < std::min(g.stride, g.height); ++row) {
    for (int64_t column = 0; column < std::min(g.stride, g.width); ++column) {
      visit(Phase{MakePhaseAxis(row, g.height, g.kernel_height, g),
                  MakePhaseAxis(column, g.width, g.kernel_width, g)});
    }
  }
}

GemmShape PhaseShape(const Conv2dGeometry& g, const Phase& phase) {
  return {static_cast<size_t>(g.batch * phase.rows.pixels * phase.columns.pixels),
          static_cast<size_t>(g.channels),
          static_cast<size_t>(phase.rows.taps * phase.columns.taps * g.out_channels)};
}

WindowGrid WindowsOfOutputGradient(const Conv2dGeometry& g, const Phase& phase) {
  return {.height = g.out_height,
          .width = g.out_width,
          .channels = g.out_channels,
          .rows = phase.rows.pixels,
          .columns = phase.columns.pixels,
          .stride = 1,
          .top = phase.rows.begin,
          .left = phase.columns.begin,
          .taps_high = phase.rows.taps,
          .taps_wide = phase.columns.taps};
}

// The weights of a phase as a matrix (taps * O, C), taps from the last to the first.
class PhaseWeightPacker {
 public:
  PhaseWeightPacker(const float* w, const Conv2dGeometry& g, const Phase& phase)
      : w_(w), g_(g), phase_(phase) {}

  void operator()(const MatrixBlock& block, float* panel, size_t stride) const {
    for (size_t r = 0; r < block.rows; ++r, panel += stride) {
      const auto row = static_cast<int64_t>(block.row + r);
      const int64_t out_channel = row % g_.out_channels;
      const int64_t tap = row / g_.out_channels;
      const int64_t tap_row = phase_.rows.last_tap - tap / phase_.columns.taps * g_.stride;
      const int64_t tap_column = phase_.columns.last_tap - tap % phase_.columns.taps * g_.stride;
      const int64_t line =
          (out_channel * g_.kernel_height + tap_row) * g_.kernel_width + tap_column;
      std::copy_n(w_ + line * g_.channels + block.column, block.columns, panel);
    }
  }

 private:
  const float* w_;  // (O, KH, KW, C)
  const Conv2dGeometry& g_;
  const Phase& phase_;
};

// The pixels of a phase in dx.
class PhaseRows {
 public:
  PhaseRows(float* dx, const Conv2dGeometry& g, const Phase& phase)
      : dx_(dx), g_(g), phase_(phase) {}

  void operator()(size_t row, size_t rows, float** addresses) const {
    const PhaseAxis& lines = phase_.rows;
    const PhaseAxis& columns = phase_.columns;
    int64_t j = static_cast<int64_t>(row) % columns.pixels;
    int64_t line = static_cast<int64_t>(row) / columns.pixels;
    int64_t start = LineStart(line / lines.pixels, line % lines.pixels);
    for (size_t r = 0; r < rows; ++r) {
      addresses[r] = dx_ + start + j * g_.stride * g_.channels;
      if (++j < columns.pixels) continue;
      j = 0;
      ++line;
      start = LineStart(line / lines.pixels, line % lines.pixels);
    }
  }

 private:
  // Offset in dx.
  int64_t LineStart(int64_t sample, int64_t i) const {
    const int64_t y = sample * g_.height + phase_.rows.first + i * g_.stride;
    return (y * g_.width + phase_.columns.first) * g_.channels;
  }

  float* dx_;  // (B, H, W, C)
  const Conv2dGeometry& g_;
  const Phase& phase_;
};

}  // namespace

size_t Conv2dGradInputCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  const Conv2dGeometry g = Conv2dGradInputGeometryOf(call).value();
  size_t bytes = 0;
  ForEachPhase(g, [&](const Phase& phase) {
    bytes =
        std::max(bytes, GemmScratchBytes(PhaseShape(g, phase), static_cast<size_t>(limits.threads),
                                         limits.scratch_bytes_per_thread));
  });
  return bytes;
}

void Conv2dGradInputCpu::Run(const KernelCall& call) {
  const Shape inputs[] = {call.in_shape(0), call.in_shape(1)};
  const Conv2dGeometry g = Conv2dGradInputGeometryOf({inputs, {}, call.attributes}).value();
  ForEachPhase(g, [&](const Phase& phase) {
    const WindowPacker dy(call.In<float>(1), WindowsOfOutputGradient(g, phase));
    const PhaseWeightPacker w(call.In<float>(0), g, phase);
    const PhaseRows dx(call.Out<float>(0), g, phase);
    Gemm({PhaseShape(g, phase), dy, w, dx}, call.scratch, call.pool);
  });
}

}  // namespace thimble
