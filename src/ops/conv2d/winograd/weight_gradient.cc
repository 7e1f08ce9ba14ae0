#include "thimble/ops/conv2d/winograd/weight_gradient.h"

#include <algorithm>

#include "thimble/base/check.h"
#include "thimble/device/cpu/gemm/blocking.h"
#include "thimble/device/cpu/gemm/micro_kernel.h"
#include "thimble/device/cpu/gemm/packer.h"
#include "thimble/device/cpu/parallel_elements.h"

namespace thimble {
namespace {

struct GradientRun {
  const WinogradWeightGradient& gradient;
  const WinogradShape shape;
  const WinogradBlocks blocks;
  const EqualPieces parts;
  const size_t strip_width;  // of the active target
  float* scratch_end;
  ThreadPool& pool;

  size_t row_numbers() const { return kWinogradTaps * shape.channels; }
  // The address for a part's gradient of a region; for the first part the result itself, unless
  // that cannot hold sums to which others are added.
  Numbers PartGradient(size_t part, IndexRange region) const {
    const bool complete = gradient.weight_gradient.is_float() || parts.count == 1;
    if (part == 0 && complete) return gradient.weight_gradient + region.begin * row_numbers();
    return scratch_end - (parts.count - part) * region.size() * row_numbers();
  }
  // Thread 0, which always has work, uses the end of the private part, so that the last word is
  // used even if nothing is shared.
  float* ThreadScratchEnd(size_t thread) const {
    return scratch_end - blocks.shared_floats - thread * blocks.floats_per_thread;
  }
};

// A block of filters, summed over a part of the tiles by one thread.
struct FilterBlock {
  IndexRange tiles;
  IndexRange channels;
  IndexRange out_channels;
  IndexRange region;  // of out channels; contains the block's
  size_t part = 0;
};

// The thread's matrices, from the end of its scratch.
struct BlockMatrices {
  BlockMatrices(const GradientRun& run, const FilterBlock& block, size_t thread) {
    const size_t rows = block.channels.size();
    const size_t columns = CeilDivide(block.out_channels.size(), run.strip_width) * run.strip_width;
    // There is no additional cache line after the last point's sums.
    sums = {nullptr, WinogradPointStride(rows, columns), columns};
    sums.data =
        run.ThreadScratchEnd(thread) - (kWinogradPoints - 1) * sums.point_stride - rows * columns;
    gradients = {nullptr, WinogradPointStride(run.blocks.tiles, columns), columns};
    gradients.data = sums.data - kWinogradPoints * gradients.point_stride;
    values = {nullptr, WinogradPointStride(run.blocks.tiles, rows), rows};
    values.data = gradients.data - kWinogradPoints * values.point_stride;
  }
  PointMatrices<float> values;
  PointMatrices<float> gradients;
  PointMatrices<float> sums;
};

void SumTiles(const GradientRun& run, const FilterBlock& block, const BlockMatrices& m) {
  const WinogradWeightGradient& g = run.gradient;
  std::fill_n(
      m.sums.data,
      (kWinogradPoints - 1) * m.sums.point_stride + block.channels.size() * m.sums.row_stride,
      0.0F);
  for (size_t begin = block.tiles.begin; begin < block.tiles.end; begin += run.blocks.tiles) {
    const IndexRange group{begin, std::min(block.tiles.end, begin + run.blocks.tiles)};
    TransformInputTiles(g.input, g.input_grid, group, block.channels, m.values);
    TransformOutputGradientTiles(g.output_gradient, g.output_grid, group, block.out_channels,
                                 m.gradients);
    AddTileSums({.values = {m.values.data, m.values.point_stride, m.values.row_stride},
                 .gradients = {m.gradients.data, m.gradients.point_stride, m.gradients.row_stride},
                 .sums = m.sums,
                 .tiles = group.size(),
                 .rows = block.channels.size(),
                 .strips = m.sums.row_stride / run.strip_width});
  }
}

// Stores the gradients of the taps, (C, K) each, as (K, 9, C).
void StoreTaps(const GradientRun& run, const FilterBlock& block, const PointMatrices<float>& taps) {
  const size_t row = block.out_channels.begin - block.region.begin;
  const Numbers to =
      run.PartGradient(block.part, block.region) + (row * run.row_numbers() + block.channels.begin);
  for (size_t tap = 0; tap < kWinogradTaps; ++tap) {
    StoreTransposed(
        taps.data + tap * taps.point_stride,
        {block.out_channels.size(), block.channels.size(), taps.row_stride, run.row_numbers()},
        to + tap * run.shape.channels);
  }
}

void SumBlock(const GradientRun& run, const FilterBlock& block, size_t thread) {
  const BlockMatrices m(run, block, thread);
  SumTiles(run, block, m);
  TransformWeightGradients(m.sums, block.channels.size(), m.sums.row_stride);
  StoreTaps(run, block, m.sums);
}

void AddParts(const GradientRun& run, IndexRange region) {
  if (run.parts.count == 1) return;
  float* total = run.PartGradient(0, region).floats();
  const Numbers result = run.gradient.weight_gradient + region.begin * run.row_numbers();
  ParallelElements(run.pool, region.size() * run.row_numbers(), [&](size_t begin, size_t end) {
    for (size_t part = 1; part < run.parts.count; ++part) {
      const float* other = run.PartGradient(part, region).floats();
      for (size_t i = begin; i < end; ++i) total[i] += other[i];
    }
    WriteNumbers(total + begin, end - begin, result + begin);
  });
}

void SumRegion(const GradientRun& run, IndexRange region) {
  const size_t blocks_in = CeilDivide(run.shape.channels, run.blocks.channels);
  const size_t blocks_out = CeilDivide(region.size(), run.blocks.out_channels);
  run.pool.Run(run.parts.count * blocks_in * blocks_out, [&](size_t chunk, size_t thread) {
    const size_t in = chunk % blocks_in * run.blocks.channels;
    const size_t out = region.begin + chunk / blocks_in % blocks_out * run.blocks.out_channels;
    const size_t part = chunk / (blocks_in * blocks_out);
    SumBlock(run,
             {.tiles = run.parts.Piece(part),
              .channels = {in, std::min(run.shape.channels, in + run.blocks.channels)},
              .out_channels = {out, std::min(region.end, out + run.blocks.out_channels)},
              .region = region,
              .part = part},
             thread);
  });
  AddParts(run, region);
}

}  // namespace

void RunWinogradWeightGradient(const WinogradWeightGradient& gradient, std::span<std::byte> scratch,
                               ThreadPool& pool) {
  const WinogradShape shape = gradient.shape();
  const auto threads = static_cast<size_t>(pool.num_threads());
  const size_t num_parts = WinogradGradientParts(shape);
  const GradientRun run{gradient,
                        shape,
                        ChooseWinogradGradientBlocks(shape, threads, scratch.size()),
                        {shape.tiles, CeilDivide(shape.tiles, num_parts), num_parts},
                        ActiveMicroTile().columns,
                        reinterpret_cast<float*>(scratch.data() + scratch.size()),
                        pool};
  THIMBLE_CHECK(run.blocks.ScratchBytes(threads) <= scratch.size(),
                "got {} bytes of scratch, expected at least {}", scratch.size(),
                run.blocks.ScratchBytes(threads));
  for (size_t begin = 0; begin < shape.out_channels; begin += run.blocks.region) {
    SumRegion(run, {begin, std::min(shape.out_channels, begin + run.blocks.region)});
  }
}

}  // namespace thimble
