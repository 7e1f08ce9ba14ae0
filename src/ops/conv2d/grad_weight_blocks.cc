#include "thimble/ops/conv2d/grad_weight_blocks.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "thimble/base/byte_size.h"
#include "thimble/device/cpu/gemm/tiles.h"

namespace thimble {
namespace {

// Eight parts keep a few threads busy, each with all of dw; more would only add memory for sums.
constexpr size_t kMaxParts = 8;
// Sums of all parts together stay near 512 KiB. A larger dw has enough units for all threads.
constexpr size_t kMaxSumFloats = size_t{1} << 17;
// A smaller part is not worth its sums.
constexpr size_t kMinPartPixels = 256;
// Pixels of a block. The sums are loaded and stored once per block, and the data of x and dy for 32
// channels, about 64 KiB, must stay in the second-level cache meanwhile.
constexpr size_t kBlockPixels = 256;
// The same if numbers are converted: the copies are scratch memory.
constexpr size_t kConvertedBlockPixels = 64;
// With fewer channels, tiles of a single tap leave many registers unused; then lines are padded, if
// a block has few enough lines for any scratch size.
constexpr size_t kFewChannels = 8;
constexpr size_t kMaxBandFloats = 3072;
// Chunks per thread, for load balance; fewer if scratch is so small that all lines are read again
// for every few units anyway.
constexpr size_t kChunksPerThread = 4;
constexpr size_t kChunksPerThreadInRegion = 2;
// Maximum sums of a chunk, so that they stay in the second-level cache.
constexpr size_t kMaxChunkFloats = size_t{1} << 15;
// A range has at most half of the output channels, so that no copy of a large dw exists in f32, and
// at most this many floats, since they add to the scratch (256 KiB); but a whole unit, if possible.
constexpr size_t kManyRangeFloats = size_t{1} << 16;
// Units that should fit in the scratch beside a range; otherwise a smaller one is chosen: with so
// few, lines are read too often.
constexpr size_t kFewUnits = 8;

size_t NumParts(const Conv2dGeometry& g) {
  const auto elements = static_cast<size_t>(g.window_elements() * g.out_channels);
  const size_t by_size = (kMaxSumFloats + elements / 2) / elements;
  const size_t by_depth = static_cast<size_t>(g.out_pixels()) / kMinPartPixels;
  return std::bit_floor(std::max<size_t>(1, std::min({by_size, by_depth, kMaxParts})));
}

// Floats of the part of a line of x that windows reach, including padding.
size_t PaddedLineFloats(const Conv2dGeometry& g) {
  const int64_t pixels = (g.out_width - 1) * g.stride + g.kernel_width;
  return RoundUp(static_cast<size_t>(pixels * g.channels), 16);
}

// At most a slot for each output line and tap row.
size_t MaxBandFloats(const Conv2dGeometry& g, size_t block_lines) {
  return block_lines * static_cast<size_t>(g.kernel_height) * PaddedLineFloats(g);
}

// The slots of any block of this many lines: of the last tap row of the last line if the block
// touches as many images as possible.
size_t NumBandSlots(const Conv2dGeometry& g, size_t block_lines) {
  const auto out_height = static_cast<size_t>(g.out_height);
  return 1 + BandSlot(g, out_height - 1, out_height + block_lines - 2,
                      static_cast<size_t>(g.kernel_height) - 1);
}

void SetThreadScratch(const Conv2dGeometry& g, const GradWeightStorage& storage,
                      const GradWeightCut& cut, GradWeightBlocks& blocks) {
  if (cut.pads_lines || storage.short_x) {
    blocks.line_floats = cut.pads_lines ? PaddedLineFloats(g)
                                        : RoundUp(static_cast<size_t>(g.width * g.channels), 16);
    blocks.band_floats = NumBandSlots(g, cut.block_lines) * blocks.line_floats;
  }
  const size_t lines = storage.short_dy ? cut.block_lines : NumCopiedLines(g);
  const size_t copied = lines * static_cast<size_t>(g.out_width * g.out_channels);
  if (copied > 0) blocks.copied_floats = RoundUp(copied + kMaxLanes, 16);
}

// A tap row is divided without regard to taps, because lines are padded: into units of two tiles,
// or of one if the last unit would be half empty, since its sums need memory too.
void CutIntoTiles(const Conv2dGeometry& g, GradWeightCut& cut) {
  const auto elements = static_cast<size_t>(g.kernel_width * g.channels);
  const size_t size = elements % (2 * kTileSide) == 0 ? 2 * kTileSide : kTileSide;
  cut.pads_lines = true;
  cut.groups = 1;
  cut.rows = {elements, size, elements / size};
}

// Divides `num_units` units that are summed together. Sums get what the rest of the blocks leaves
// of so many floats, but at least the smallest possible scratch.
void DivideUnits(const GradWeightCut& cut, size_t num_units, size_t threads, size_t floats,
                 GradWeightBlocks& blocks) {
  const size_t other_floats = threads * blocks.floats_per_thread() + blocks.range_floats;
  const size_t sum_floats = floats > other_floats ? floats - other_floats : 0;
  const size_t parts = cut.parts.count;
  const size_t copies = parts == 1 ? threads : parts;
  const size_t room = std::max<size_t>(1, sum_floats / (copies * cut.unit_floats()));
  if (parts > 1) blocks.region_units = CutEqually(num_units, room).size;
  const size_t units = parts == 1 ? num_units : blocks.region_units;
  const size_t chunks =
      threads * (units < cut.num_units() ? kChunksPerThreadInRegion : kChunksPerThread);
  const size_t most = std::max<size_t>(1, std::min({CeilDivide(units, CeilDivide(chunks, parts)),
                                                    room, kMaxChunkFloats / cut.unit_floats()}));
  blocks.chunk_units = CutEqually(units, most).size;
  if (parts == 1) blocks.region_units = blocks.chunk_units;
  blocks.sum_floats = copies * blocks.region_units * cut.unit_floats();
}

// Half of the output channels of a range, in whole units; down to a vector of them.
size_t HalfRange(size_t columns) {
  return RoundUp(CeilDivide(columns, 2), columns > kMaxOuterColumns ? kMaxOuterColumns : kMaxLanes);
}

size_t MostRangeColumns(const Conv2dGeometry& g) {
  const auto window = static_cast<size_t>(g.window_elements());
  size_t columns = RoundUp(static_cast<size_t>(g.out_channels), kMaxLanes);
  if (columns <= kMaxOuterColumns) return columns;
  do {
    columns = HalfRange(columns);
  } while (columns > kMaxOuterColumns && columns * window > kManyRangeFloats);
  return columns;
}

// The blocks for ranges of so many output channels.
GradWeightBlocks RangesOf(const Conv2dGeometry& g, const GradWeightStorage& storage, size_t columns,
                          size_t threads, size_t floats) {
  const GradWeightCut cut = CutGradWeight(g, storage, std::min(columns, kMaxOuterColumns));
  GradWeightBlocks blocks;
  SetThreadScratch(g, storage, cut, blocks);
  blocks.range_columns = columns;
  const size_t channels = std::min(columns, static_cast<size_t>(g.out_channels));
  blocks.range_floats =
      kRangeMargin + RoundUp(channels * static_cast<size_t>(g.window_elements()), 16);
  const size_t column_blocks = std::min(cut.column_blocks, columns / cut.unit_columns);
  DivideUnits(cut, column_blocks * cut.units_per_column_block, threads, floats, blocks);
  return blocks;
}

}  // namespace

bool CanBeTiled(const Conv2dGeometry& g) {
  const auto side = static_cast<int64_t>(kTileSide);
  return g.kernel_width * g.channels % side == 0 && g.out_channels % side == 0 &&
         static_cast<size_t>(g.out_channels) <= kMaxTiledChannels &&
         TileDepth(static_cast<size_t>(g.out_width)) > 0;
}

size_t BandSlot(const Conv2dGeometry& g, size_t begin, size_t line, size_t tap_row) {
  const auto out_height = static_cast<size_t>(g.out_height);
  const auto kernel_height = static_cast<size_t>(g.kernel_height);
  const size_t step = std::min(static_cast<size_t>(g.stride), kernel_height);
  const size_t images_before = line / out_height - begin / out_height;
  return (line - begin) * step + images_before * (kernel_height - step) + tap_row;
}

GradWeightCut CutGradWeight(const Conv2dGeometry& g, const GradWeightStorage& storage,
                            size_t max_columns) {
  GradWeightCut cut;
  const auto lines = static_cast<size_t>(g.batch * g.out_height);
  cut.parts = CutEqually(lines, CeilDivide(lines, NumParts(g)));
  const bool converts = storage.short_x || storage.short_dy;
  const size_t pixels = converts ? kConvertedBlockPixels : kBlockPixels;
  cut.block_lines =
      std::clamp<size_t>(pixels / static_cast<size_t>(g.out_width), 1, kMaxBlockLines);
  // Pairs of lines should be complete.
  if (storage.pairs) cut.block_lines = RoundUp(cut.block_lines, 2);
  cut.pads_lines = static_cast<size_t>(g.channels) < kFewChannels && g.kernel_width > 1 &&
                   MaxBandFloats(g, cut.block_lines) <= kMaxBandFloats;
  cut.groups = cut.pads_lines ? 1 : static_cast<size_t>(g.kernel_width);
  cut.rows =
      CutEqually(static_cast<size_t>(g.kernel_width * g.channels) / cut.groups, kMaxOuterRows);
  if (storage.tiles) CutIntoTiles(g, cut);
  const auto channels = static_cast<size_t>(g.out_channels);
  cut.unit_columns = std::min(RoundUp(channels, kMaxLanes), max_columns);
  cut.column_blocks = CeilDivide(channels, cut.unit_columns);
  cut.units_per_column_block = static_cast<size_t>(g.kernel_height) * cut.groups * cut.rows.count;
  return cut;
}

size_t NumCopiedLines(const Conv2dGeometry& g) {
  const auto channels = static_cast<size_t>(g.out_channels);
  const size_t beyond = RoundUp(channels, kMaxLanes) - channels;
  if (beyond == 0) return 0;
  const size_t reached = CeilDivide(beyond, static_cast<size_t>(g.out_width) * channels);
  return std::min(reached, static_cast<size_t>(g.batch * g.out_height));
}

GradWeightBlocks ChooseGradWeightBlocks(const Conv2dGeometry& g, const GradWeightStorage& storage,
                                        size_t threads, size_t scratch_bytes) {
  const GradWeightCut cut = CutGradWeight(g, storage);
  GradWeightBlocks blocks;
  SetThreadScratch(g, storage, cut, blocks);
  DivideUnits(cut, cut.num_units(), threads, scratch_bytes / sizeof(float), blocks);
  return blocks;
}

GradWeightBlocks ChooseGradWeightRanges(const Conv2dGeometry& g, const GradWeightStorage& storage,
                                        size_t threads, size_t scratch_bytes) {
  const size_t floats = scratch_bytes / sizeof(float);
  for (size_t columns = MostRangeColumns(g);; columns = HalfRange(columns)) {
    const GradWeightBlocks blocks = RangesOf(g, storage, columns, threads, floats);
    if (columns == kMaxLanes) return blocks;
    // With any scratch.
    const GradWeightBlocks best = RangesOf(g, storage, columns, threads, SIZE_MAX);
    if (blocks.ScratchBytes(threads) <= scratch_bytes &&
        blocks.region_units >= std::min(kFewUnits, best.region_units)) {
      return blocks;
    }
  }
}

}  // namespace thimble
