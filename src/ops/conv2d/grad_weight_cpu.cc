// conv2d_grad_weight on the CPU: to a dense dw at once, to a packed one range by range.
#include <algorithm>

#include "thimble/base/check.h"
#include "thimble/device/cpu/packed_numbers.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/device/cpu/thread_pool.h"
#include "thimble/ops/conv2d/conv2d.h"
#include "thimble/ops/conv2d/grad_weight_ranges.h"
#include "thimble/ops/conv2d/grad_weight_sums.h"

namespace thimble {
namespace {

using ChooseBlocks = GradWeightBlocks (*)(const Conv2dGeometry&, const GradWeightStorage&, size_t,
                                          size_t);

// A line without a partner is paired with zeros, so the number of lines does not matter.
bool CanPairLines(DType x, DType dy) { return CanBePaired(x, dy, /*depth=*/0); }

GradWeightStorage StorageOf(const Conv2dGeometry& g, DType x, DType dy, bool pairs, bool tiles) {
  pairs = pairs && CanPairLines(x, dy);
  return {.short_x = IsShortNumber(x),
          .short_dy = IsShortNumber(dy),
          .pairs = pairs,
          .tiles = pairs && tiles && CanBeTiled(g)};
}

size_t ScratchBytesWith(ChooseBlocks choose, const OpCall& call, const KernelLimits& limits) {
  const Conv2dGeometry g = Conv2dGradWeightGeometryOf(call).value();
  if (g.flops() == 0) return 0;
  const auto threads = static_cast<size_t>(limits.threads);
  const auto bytes = [&](bool pairs, bool tiles) {
    const auto storage = StorageOf(g, call.input_type(0), call.input_type(1), pairs, tiles);
    return choose(g, storage, threads, threads * limits.scratch_bytes_per_thread)
        .ScratchBytes(threads);
  };
  return std::max({bytes(false, false), bytes(true, false), bytes(true, true)});
}

Conv2dGeometry GeometryOf(const KernelCall& call) {
  const Shape inputs[] = {call.in_shape(0), call.in_shape(1)};
  return Conv2dGradWeightGeometryOf({inputs, {}, call.attributes}).value();
}

// Requires that nothing is empty.
GradWeightRun StartRun(const KernelCall& call, const Conv2dGeometry& g, ChooseBlocks choose) {
  const TensorView& x = call.inputs[0];
  const TensorView& dy = call.inputs[1];
  const auto storage = StorageOf(g, x.dtype, dy.dtype, MultipliesPairs(), MultipliesTiles());
  const auto threads = static_cast<size_t>(call.pool.num_threads());
  const GradWeightBlocks blocks = choose(g, storage, threads, call.scratch.size());
  THIMBLE_CHECK(blocks.ScratchBytes(threads) <= call.scratch.size(),
                "got {} bytes of scratch, expected at least {}", call.scratch.size(),
                blocks.ScratchBytes(threads));
  const size_t max_columns = blocks.range_columns == 0
                                 ? kMaxOuterColumns
                                 : std::min(blocks.range_columns, kMaxOuterColumns);
  return {.g = g,
          .pairs = storage.pairs,
          .tiles = storage.tiles,
          .cut = CutGradWeight(g, storage, max_columns),
          .blocks = blocks,
          .x = LinePacker(ConstNumbersOf(x), g.width, g.channels, x.norm),
          .dy = ConstNumbersOf(dy),
          .scratch = reinterpret_cast<float*>(call.scratch.data()),
          .scratch_end = reinterpret_cast<float*>(call.scratch.data() + call.scratch.size())};
}

// The gradient of an empty sum.
void SinkZeros(const Conv2dGeometry& g, GradWeightSink sink) {
  constexpr size_t kCount = 1024;
  alignas(64) float zeros[kRangeMargin + kCount];
  const auto elements = static_cast<size_t>(g.w_shape().elements());
  for (size_t first = 0; first < elements; first += kCount) {
    std::fill_n(zeros + kRangeMargin, kCount, 0.0F);
    sink(first, std::min(kCount, elements - first), zeros + kRangeMargin);
  }
}

}  // namespace

size_t GradWeightRangesScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return ScratchBytesWith(&ChooseGradWeightRanges, call, limits);
}

void RunGradWeightRanges(const KernelCall& call, GradWeightSink sink) {
  const Conv2dGeometry g = GeometryOf(call);
  if (g.flops() == 0) return SinkZeros(g, sink);
  const GradWeightRun run = StartRun(call, g, &ChooseGradWeightRanges);
  const auto threads = static_cast<size_t>(call.pool.num_threads());
  float* values = run.ThreadScratch(threads) + kRangeMargin;
  const auto channels = static_cast<size_t>(g.out_channels);
  const auto window = static_cast<size_t>(g.window_elements());
  const size_t columns = run.blocks.range_columns;
  const size_t range_units = columns / run.cut.unit_columns * run.cut.units_per_column_block;
  for (size_t first = 0, unit = 0; first < channels; first += columns, unit += range_units) {
    const IndexRange units{unit, std::min(unit + range_units, run.cut.num_units())};
    SumGradWeightUnits(run, units, {values, first}, call.pool);
    sink(first * window, std::min(columns, channels - first) * window, values);
  }
}

size_t Conv2dGradWeightCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  if (call.has_packed) return GradWeightRangesScratchBytes(call, limits);
  return ScratchBytesWith(&ChooseGradWeightBlocks, call, limits);
}

void Conv2dGradWeightCpu::Run(const KernelCall& call) {
  const TensorView& dw = call.outputs[0];
  if (dw.is_packed()) {
    Numbers next = NumbersOf(StoredNumbers(dw));
    return RunGradWeightRanges(call, [&](size_t first, size_t count, float* values) {
      const size_t active = GatherActive(dw.packed, first, count, values, values);
      EncodeNumbers(values, active, next);
      next = next + active;
    });
  }
  const Conv2dGeometry g = GeometryOf(call);
  if (g.flops() == 0) {
    ParallelNumbers(call.pool, {}, call.outputs,
                    [](const NumberPiece& piece) { std::fill_n(piece.out[0], piece.count, 0.0F); });
    return;
  }
  const GradWeightRun run = StartRun(call, g, &ChooseGradWeightBlocks);
  SumGradWeightUnits(run, {0, run.cut.num_units()}, {NumbersOf(dw)}, call.pool);
}

}  // namespace thimble
