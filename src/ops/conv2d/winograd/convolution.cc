#include "thimble/ops/conv2d/winograd/convolution.h"

#include <algorithm>

#include "thimble/base/check.h"
#include "thimble/device/cpu/gemm/blocking.h"
#include "thimble/device/cpu/gemm/micro_kernel.h"

namespace thimble {
namespace {

// One block of input and output channels, over all tiles.
struct WeightBlock {
  IndexRange channels;
  IndexRange out_channels;
  size_t strip_width = 0;  // of the active target

  size_t strips() const { return CeilDivide(out_channels.size(), strip_width); }
  size_t columns() const { return strips() * strip_width; }
};

struct ConvolutionRun {
  const WinogradConvolution& convolution;
  const WinogradBlocks blocks;
  float* scratch;
  float* scratch_end;
  ThreadPool& pool;

  // Whether sums over several blocks of input channels are made in scratch, as floats.
  bool KeepsSums() const { return blocks.sum_floats > 0; }
  float* Sums() const { return scratch_end - blocks.shared_floats - blocks.sum_floats; }
  float* ThreadScratch(size_t thread) const { return scratch + thread * blocks.floats_per_thread; }

  // The transformed filters of a block end where the scratch ends, so that its last word is always
  // used.
  PointMatrices<float> Weights(const WeightBlock& block) const {
    const size_t stride = WinogradPointStride(block.channels.size(), block.columns());
    // There is no additional cache line after the last matrix.
    const size_t floats =
        kWinogradPoints * stride - (stride - block.channels.size() * block.columns());
    return {scratch_end - floats, stride, block.strip_width};
  }
};

// Packs and transforms the filters of some input channels for one strip of output channels.
void TransformWeights(const ConvolutionRun& run, const WeightBlock& block, IndexRange rows,
                      size_t strip, float* taps) {
  const size_t width = block.strip_width;
  const size_t tap_stride = kTapRows * width;
  const size_t first = block.out_channels.begin + strip * width;
  const size_t used = std::min(width, block.out_channels.end - first);
  if (used < width) std::fill_n(taps, kWinogradTaps * tap_stride, 0.0F);
  const auto channels = static_cast<size_t>(run.convolution.input_grid.channels);
  for (size_t tap = 0; tap < kWinogradTaps; ++tap) {
    run.convolution.weights(
        {tap * channels + block.channels.begin + rows.begin, rows.size(), first, used},
        taps + tap * tap_stride, width);
  }
  PointMatrices<float> weights = run.Weights(block);
  weights.data += (strip * block.channels.size() + rows.begin) * width;
  TransformWeightStrip(taps, tap_stride, rows.size(), weights);
}

void TransformAllWeights(const ConvolutionRun& run, const WeightBlock& block) {
  const EqualPieces pieces = CutEqually(block.channels.size(), kTapRows);
  run.pool.Run(block.strips() * pieces.count, [&](size_t chunk, size_t thread) {
    TransformWeights(run, block, pieces.Piece(chunk % pieces.count), chunk / pieces.count,
                     run.ThreadScratch(thread));
  });
}

// Transforms products to outputs: to the images, or to the sums of a region that are not complete.
void StoreTiles(const ConvolutionRun& run, const WeightBlock& block, IndexRange region,
                IndexRange tiles, const PointMatrices<const float>& products) {
  const WinogradConvolution& c = run.convolution;
  const bool first = block.channels.begin == 0;
  const bool last = block.channels.end == static_cast<size_t>(c.input_grid.channels);
  const size_t channels = block.out_channels.size();
  const IndexRange in_region{tiles.begin - region.begin, tiles.end - region.begin};
  TileOutputs outputs{.products = products,
                      .images = c.output,
                      .grid = c.output_grid,
                      .tiles = tiles,
                      .channels = block.out_channels,
                      .add = !first};
  if (run.KeepsSums() && !last) {
    // As images of one tile each.
    outputs.images = run.Sums();
    outputs.grid = {.height = kWinogradOutputs,
                    .width = kWinogradOutputs,
                    .channels = static_cast<int64_t>(channels),
                    .tiles_high = 1,
                    .tiles_wide = 1};
    outputs.tiles = in_region;
    outputs.channels = {0, channels};
  } else if (run.KeepsSums()) {
    outputs.add = false;
    outputs.sums = run.Sums() + in_region.begin * kTileOutputs * channels;
  }
  if (last) outputs.added = c.added;
  TransformOutputTiles(outputs);
}

void ConvolveTiles(const ConvolutionRun& run, const WeightBlock& block, IndexRange region,
                   IndexRange tiles, float* scratch) {
  const WinogradConvolution& c = run.convolution;
  const size_t depth = block.channels.size();
  const PointMatrices<float> values{scratch, WinogradPointStride(run.blocks.tiles, depth), depth};
  const PointMatrices<float> products{scratch + kWinogradPoints * values.point_stride,
                                      WinogradPointStride(run.blocks.tiles, block.columns()),
                                      block.columns()};
  const PointMatrices<float> weights = run.Weights(block);
  TransformInputTiles(c.input, c.input_grid, tiles, block.channels, values);
  MultiplyTiles({.values = {values.data, values.point_stride, values.row_stride},
                 .weights = {weights.data, weights.point_stride, weights.row_stride},
                 .products = products,
                 .tiles = tiles.size(),
                 .depth = depth,
                 .strips = block.strips()});
  StoreTiles(run, block, region, tiles,
             {products.data, products.point_stride, products.row_stride});
}

void ConvolveRegion(const ConvolutionRun& run, const WeightBlock& block, IndexRange region) {
  const size_t tiles = region.size();
  const auto threads = static_cast<size_t>(run.pool.num_threads());
  // The same number of groups for every thread.
  const size_t rounds = CeilDivide(tiles, run.blocks.tiles * threads);
  const EqualPieces groups = CutEqually(tiles, CeilDivide(tiles, rounds * threads));
  run.pool.Run(groups.count, [&](size_t group, size_t thread) {
    const IndexRange group_tiles = groups.Piece(group);
    ConvolveTiles(run, block, region,
                  {region.begin + group_tiles.begin, region.begin + group_tiles.end},
                  run.ThreadScratch(thread));
  });
}

}  // namespace

void RunWinogradConvolution(const WinogradConvolution& convolution, std::span<std::byte> scratch,
                            ThreadPool& pool) {
  const WinogradShape shape = convolution.shape();
  const auto threads = static_cast<size_t>(pool.num_threads());
  const ConvolutionRun run{convolution, ChooseWinogradBlocks(shape, threads, scratch.size()),
                           reinterpret_cast<float*>(scratch.data()),
                           reinterpret_cast<float*>(scratch.data() + scratch.size()), pool};
  THIMBLE_CHECK(run.blocks.ScratchBytes(threads) <= scratch.size(),
                "got {} bytes of scratch, expected at least {}", scratch.size(),
                run.blocks.ScratchBytes(threads));
  const EqualPieces channels = CutEqually(shape.channels, kWinogradChannels);
  const size_t strip_width = ActiveMicroTile().columns;
  for (size_t out = 0; out < shape.out_channels; out += run.blocks.out_channels) {
    const IndexRange out_channels{out, std::min(shape.out_channels, out + run.blocks.out_channels)};
    for (size_t begin = 0; begin < shape.tiles; begin += run.blocks.region) {
      const IndexRange region{begin, std::min(shape.tiles, begin + run.blocks.region)};
      for (size_t piece = 0; piece < channels.count; ++piece) {
        const WeightBlock block{channels.Piece(piece), out_channels, strip_width};
        TransformAllWeights(run, block);
        ConvolveRegion(run, block, region);
      }
    }
  }
}

}  // namespace thimble
