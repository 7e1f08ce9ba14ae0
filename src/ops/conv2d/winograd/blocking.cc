#include "thimble/ops/conv2d/winograd/blocking.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "thimble/base/byte_size.h"
#include "thimble/device/cpu/gemm/blocking.h"
#include "thimble/device/cpu/gemm/micro_kernel.h"
#include "thimble/ops/conv2d/winograd/tiles.h"

namespace thimble {
namespace {

size_t WholeStrips(size_t columns) { return RoundUp(columns, kMaxTileColumns); }

// Rough cycle counts for 16 channels of one tile, to compare block sizes: transforms of inputs, of
// output gradients or outputs, and a multiply-add of all points with 16 channels.
constexpr double kInputCycles = 200;
constexpr double kOutputCycles = 160;
constexpr double kProductCycles = 36;
// The same for transforming the filters of 16 pairs of channels.
constexpr double kWeightCycles = 100;

// Calls visit(size) for the sizes that divide `total` into 1, 2, 4, … equal blocks, rounded to
// multiples.
template <class Visit>
void ForEachBlockSize(size_t total, size_t multiple, const Visit& visit) {
  for (size_t count = 1;; count *= 2) {
    const size_t size = RoundUp(CeilDivide(total, count), multiple);
    visit(size);
    if (size == multiple) return;
  }
}

// Keeps the cheapest blocks that fit, and the smallest in case none fit.
class BestBlocks {
 public:
  BestBlocks(size_t threads, size_t scratch_bytes)
      : threads_(threads), scratch_bytes_(scratch_bytes) {}

  void Consider(const WinogradBlocks& blocks, double cost) {
    const size_t bytes = blocks.ScratchBytes(threads_);
    const bool fits = bytes <= scratch_bytes_;
    const bool better = fits ? !fits_ || cost < cost_ || (cost == cost_ && bytes < bytes_)
                             : !fits_ && bytes < bytes_;
    if (!better) return;
    best_ = blocks;
    fits_ = fits;
    cost_ = cost;
    bytes_ = bytes;
  }
  const WinogradBlocks& best() const { return best_; }

 private:
  size_t threads_;
  size_t scratch_bytes_;
  WinogradBlocks best_;
  bool fits_ = false;
  double cost_ = HUGE_VAL;
  size_t bytes_ = SIZE_MAX;
};

// Cycles for one tile of the weight gradient.
double GradientCost(const WinogradShape& shape, const WinogradBlocks& blocks, size_t parts,
                    size_t threads) {
  const size_t blocks_in = CeilDivide(shape.channels, blocks.channels);
  const size_t blocks_out = CeilDivide(shape.out_channels, blocks.out_channels);
  const double channels = static_cast<double>(shape.channels) / 16;
  const double out_channels = static_cast<double>(WholeStrips(shape.out_channels)) / 16;
  // Sums are loaded and stored once for each group.
  const double products =
      kProductCycles * channels * 16 * out_channels * (1 + 2.5 / static_cast<double>(blocks.tiles));
  const double transforms = kInputCycles * channels * static_cast<double>(blocks_out) +
                            kOutputCycles * out_channels * static_cast<double>(blocks_in);
  // With few blocks, threads wait for the last ones.
  const size_t chunks = parts * blocks_in * CeilDivide(blocks.region, blocks.out_channels);
  const double waiting =
      static_cast<double>(CeilDivide(chunks, threads) * threads) / static_cast<double>(chunks);
  return waiting * (products + transforms);
}

constexpr size_t kConvolutionGroups[] = {14, 7, 4, 2, 1};
constexpr size_t kGradientGroups[] = {112, 84, 56, 42, 28, 14, 7, 4, 2, 1};

}  // namespace

WinogradBlocks ChooseWinogradBlocks(const WinogradShape& shape, size_t threads,
                                    size_t scratch_bytes) {
  const double channels = static_cast<double>(shape.channels) / 16;
  const double out_channels = static_cast<double>(WholeStrips(shape.out_channels)) / 16;
  BestBlocks best(threads, scratch_bytes);
  WinogradBlocks blocks;
  blocks.channels = CutEqually(shape.channels, kWinogradChannels).size;
  const bool keeps_sums = shape.short_results && blocks.channels < shape.channels;
  ForEachBlockSize(shape.out_channels, kMaxTileColumns, [&](size_t block_out) {
    blocks.out_channels = block_out;
    blocks.shared_floats = WinogradFloats(blocks.channels, block_out);
    for (size_t tiles : kConvolutionGroups) {
      blocks.tiles = tiles;
      blocks.floats_per_thread = std::max(
          kTapFloats, WinogradFloats(tiles, blocks.channels) + WinogradFloats(tiles, block_out));
      // With few rows, multiplications wait for loads.
      const double product =
          kProductCycles * channels * 16 * out_channels * (1 + 1.5 / static_cast<double>(tiles));
      const auto times_input = static_cast<double>(CeilDivide(shape.out_channels, block_out));
      const double cost = product + kInputCycles * channels * times_input;
      blocks.region = shape.tiles;
      if (!keeps_sums) {
        best.Consider(blocks, cost);
        continue;
      }
      ForEachBlockSize(shape.tiles, 1, [&](size_t region) {
        blocks.region = region;
        blocks.sum_floats = region * kTileOutputs * std::min(block_out, shape.out_channels);
        // Filters are transformed again for each region.
        const double weights = kWeightCycles * channels * 16 * out_channels;
        best.Consider(blocks, cost + weights / static_cast<double>(region));
      });
    }
  });
  return best.best();
}

size_t WinogradGradientParts(const WinogradShape& shape) {
  const size_t weights = std::max<size_t>(1, shape.channels * shape.out_channels);
  const auto by_size = static_cast<size_t>(std::sqrt(65536.0 / static_cast<double>(weights)));
  // A part with fewer tiles would not be worth its transform.
  const size_t by_tiles = shape.tiles / 32;
  return std::bit_floor(std::clamp<size_t>(std::min(by_size, by_tiles), 1, 8));
}

WinogradBlocks ChooseWinogradGradientBlocks(const WinogradShape& shape, size_t threads,
                                            size_t scratch_bytes) {
  const size_t parts = WinogradGradientParts(shape);
  BestBlocks best(threads, scratch_bytes);
  WinogradBlocks blocks;
  const bool keeps_sums = shape.short_results && parts > 1;
  const size_t shared_parts = keeps_sums ? parts : parts - 1;
  const auto consider = [&](size_t region) {
    blocks.region = region;
    // Rounded to whole cache lines.
    blocks.shared_floats = RoundUp(
        shared_parts * kWinogradTaps * shape.channels * std::min(region, shape.out_channels), 16);
    best.Consider(blocks, GradientCost(shape, blocks, parts, threads));
  };
  const size_t most_in = CutEqually(shape.channels, kWinogradChannels).size;
  const size_t most_out = std::min(shape.out_channels, kWinogradChannels);
  ForEachBlockSize(most_in, 16, [&](size_t block_in) {
    ForEachBlockSize(most_out, kMaxTileColumns, [&](size_t block_out) {
      for (size_t tiles : kGradientGroups) {
        if (tiles > 14 && tiles > shape.tiles) continue;
        blocks.tiles = tiles;
        blocks.channels = block_in;
        blocks.out_channels = block_out;
        blocks.floats_per_thread = WinogradFloats(tiles, block_in) +
                                   WinogradFloats(tiles, block_out) +
                                   WinogradFloats(block_in, block_out);
        if (keeps_sums) {
          ForEachBlockSize(shape.out_channels, block_out, consider);
        } else {
          consider(RoundUp(shape.out_channels, block_out));
        }
      }
    });
  });
  return best.best();
}

}  // namespace thimble
