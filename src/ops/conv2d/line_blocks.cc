#include "thimble/ops/conv2d/line_blocks.h"

#include <algorithm>
#include <limits>

#include "thimble/base/byte_size.h"
#include "thimble/device/cpu/gemm/micro_kernel.h"
#include "thimble/device/cpu/gemm/tiles.h"

namespace thimble {
namespace {

// Approximate pixels of a chunk. The weights of one column strip, up to 150 KiB from the
// second-level cache, are used for all of them before the next strip; and the band, about as large,
// stays there too. A multiple of the tiles' rows (14 and 6), for longer lines.
constexpr size_t kChunkPixels = 252;
// This many chunks keep 16 threads evenly busy.
constexpr size_t kManyChunks = 64;
// Pixels and elements of a line below which a narrower chunk would spend most of its time packing.
constexpr size_t kFewPixels = 2 * kMaxTileRows;
constexpr size_t kFewElements = 64;

size_t Half(size_t value) { return CeilDivide(value, 2); }

void Size(const WindowGrid& grid, LineBlocks& blocks) {
  blocks.weight_floats =
      blocks.tap_rows * blocks.row_elements * RoundUp(blocks.out_channels, kMaxTileColumns);
  blocks.line_floats = blocks.band_floats = 0;
  if (grid.ReadsInPlace() || blocks.weight_floats == 0) return;
  const size_t pixels =
      (blocks.columns - 1) * static_cast<size_t>(grid.stride) + static_cast<size_t>(grid.taps_wide);
  const size_t lines = (blocks.lines - 1) * BandStep(grid, blocks.tap_rows) + blocks.tap_rows;
  blocks.line_floats = RoundUp(pixels * static_cast<size_t>(grid.channels), 16);
  blocks.band_floats = lines * blocks.line_floats;
}

// Floats moved per output pixel in addition to those of a single region: image lines are packed (or
// read) for each region, and output is read and written again for all tap rows except the first
// ones.
double MovedFloats(const WindowGrid& grid, size_t out_channels, const LineBlocks& blocks) {
  const auto pixels = static_cast<double>(blocks.lines * blocks.columns);
  const double packed = blocks.band_floats > 0 ? static_cast<double>(blocks.band_floats) / pixels
                                               : static_cast<double>(grid.channels);
  const size_t channel_regions = CeilDivide(out_channels, blocks.out_channels);
  const size_t tap_regions =
      CeilDivide(static_cast<size_t>(grid.taps_high), std::max<size_t>(1, blocks.tap_rows));
  return static_cast<double>(channel_regions * tap_regions) * packed +
         static_cast<double>((std::max<size_t>(1, tap_regions) - 1) * 2 * out_channels);
}

// Visits the value, its half and so on down to `least`, rounded to multiples of `least`.
template <class Visit>
void ForEachHalf(size_t value, size_t least, Visit visit) {
  for (;;) {
    visit(value);
    if (value <= least) return;
    value = RoundUp(Half(value), least);
  }
}

// Used if not even the smallest region fits: takes less of each line.
bool Narrow(const WindowGrid& grid, LineBlocks& blocks) {
  const bool many_elements = !grid.short_outputs && blocks.row_elements > kFewElements;
  if (blocks.band_floats > 0 && blocks.columns > (many_elements ? kFewPixels : 1)) {
    blocks.columns = Half(blocks.columns);
  } else if (many_elements) {
    // Whole tiles, on every machine: then neither bits nor scratch depend on where it is divided.
    blocks.row_elements =
        RoundUp(Half(blocks.row_elements), std::max<size_t>(1, RowTileDepth(grid)));
  } else {
    return false;
  }
  return true;
}

}  // namespace

size_t RowTileDepth(const WindowGrid& grid) {
  if (!grid.pairs || static_cast<size_t>(grid.taps_high) > kMaxTileSegments) return 0;
  return TileDepth(static_cast<size_t>(grid.row_elements()));
}

LineBlocks LargestLineBlocks(const WindowGrid& grid, size_t out_channels) {
  const auto rows = static_cast<size_t>(grid.rows);
  const auto columns = static_cast<size_t>(grid.columns);
  LineBlocks blocks;
  blocks.columns = std::min(columns, kChunkPixels);
  const size_t all_lines =
      static_cast<size_t>(grid.batch) * rows * CeilDivide(columns, blocks.columns);
  const size_t most = std::max<size_t>(
      1, std::min(all_lines / kManyChunks, CeilDivide(kChunkPixels, blocks.columns)));
  blocks.lines = CutEqually(rows, most).size;
  blocks.out_channels = out_channels;
  return BlocksOfPhase(grid, blocks);
}

LineBlocks BlocksOfPhase(const WindowGrid& grid, const LineBlocks& chunk) {
  LineBlocks blocks = chunk;
  blocks.tap_rows = static_cast<size_t>(grid.taps_high);
  blocks.row_elements = static_cast<size_t>(grid.row_elements());
  Size(grid, blocks);
  return blocks;
}

LineBlocks ChooseLineBlocks(const WindowGrid& grid, size_t out_channels, size_t threads,
                            size_t scratch_bytes) {
  const LineBlocks largest = LargestLineBlocks(grid, out_channels);
  LineBlocks blocks = largest;
  LineBlocks best;
  double least_moved = std::numeric_limits<double>::infinity();
  ForEachHalf(largest.lines, 1, [&](size_t lines) {
    ForEachHalf(out_channels, kMaxTileColumns, [&](size_t channels) {
      ForEachHalf(largest.tap_rows, grid.short_outputs ? largest.tap_rows : 1,
                  [&](size_t tap_rows) {
                    blocks.lines = lines;
                    blocks.out_channels = channels;
                    blocks.tap_rows = tap_rows;
                    Size(grid, blocks);
                    const double moved = MovedFloats(grid, out_channels, blocks);
                    if (blocks.ScratchBytes(threads) > scratch_bytes || moved >= least_moved)
                      return;
                    best = blocks;
                    least_moved = moved;
                  });
    });
  });
  if (best.out_channels > 0) return best;
  while (blocks.ScratchBytes(threads) > scratch_bytes && Narrow(grid, blocks)) Size(grid, blocks);
  return blocks;
}

}  // namespace thimble
