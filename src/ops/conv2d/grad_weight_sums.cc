#include "thimble/ops/conv2d/grad_weight_sums.h"

#include <algorithm>
#include <array>
#include <optional>

#include "thimble/device/cpu/gemm/outer_product.h"
#include "thimble/device/cpu/gemm/packer.h"
#include "thimble/device/cpu/gemm/tiles.h"
#include "thimble/device/cpu/thread_pool.h"

namespace thimble {
namespace {

struct Unit {
  size_t column_block;
  int64_t tap_row;
  int64_t group;
  IndexRange rows;
};

Unit UnitAt(const GradWeightCut& cut, size_t index) {
  const size_t piece = index % cut.units_per_column_block;
  const size_t group = piece / cut.rows.count;
  return {index / cut.units_per_column_block, static_cast<int64_t>(group / cut.groups),
          static_cast<int64_t>(group % cut.groups), cut.rows.Piece(piece % cut.rows.count)};
}

IndexRange UnitColumns(const GradWeightRun& run, const Unit& unit) {
  const size_t begin = unit.column_block * run.cut.unit_columns;
  return {begin, std::min(static_cast<size_t>(run.g.out_channels), begin + run.cut.unit_columns)};
}

// The output pixels of a line for which the group is inside the image.
IndexRange GroupPixels(const GradWeightRun& run, const Unit& unit) {
  const Conv2dGeometry& g = run.g;
  if (run.cut.pads_lines) return {0, static_cast<size_t>(g.out_width)};
  const int64_t left = unit.group - g.padding;  // column in the image of the first window's tap
  const int64_t begin = left >= 0 ? 0 : std::min(g.out_width, (g.stride - 1 - left) / g.stride);
  const int64_t end = left >= g.width ? begin : (g.width - 1 - left) / g.stride + 1;
  return {static_cast<size_t>(begin), static_cast<size_t>(std::clamp(end, begin, g.out_width))};
}

// The tiles of dy: output channels, output pixels.
TileShape TileShapeOf(const Conv2dGeometry& g) {
  return {kTileSide, TileDepth(static_cast<size_t>(g.out_width))};
}

void AddUnitInTiles(const GradWeightRun& run, const Unit& unit, const GradWeightLines& lines,
                    float* sums) {
  const auto width = static_cast<size_t>(run.g.out_width);
  const IndexRange columns = UnitColumns(run, unit);
  const size_t first = (columns.begin - lines.columns().begin) * width;
  std::array<TileSegment, kMaxTileSegments> segments;
  static_assert(kMaxTileSegments >= kMaxBlockLines);
  for (size_t i = 0; i < lines.count(); ++i) {
    const float* dy = lines.dy()[i] + first;
    segments[i] = {{dy, dy + kTileSide * width}, lines.x()[i] + unit.rows.begin};
  }
  MultiplyTiles({.shape = TileShapeOf(run.g),
                 .segments = {segments.data(), lines.count()},
                 .depth = width,
                 .a_stride = width,
                 .b_stride = static_cast<size_t>(run.g.stride * run.g.channels),
                 .halves = columns.size() / kTileSide,
                 .column_tiles = unit.rows.size() / kTileSide,
                 .sums = sums,
                 .sums_stride = run.cut.rows.size,
                 .adds = true});
}

void AddUnit(const GradWeightRun& run, const Unit& unit, const GradWeightLines& lines,
             float* sums) {
  if (run.tiles) return AddUnitInTiles(run, unit, lines, sums);
  const Conv2dGeometry& g = run.g;
  const IndexRange columns = UnitColumns(run, unit);
  const IndexRange pixels = GroupPixels(run, unit);
  if (lines.count() == 0 || pixels.size() == 0) return;
  const int64_t first_pixel = static_cast<int64_t>(pixels.begin) * g.stride +
                              (run.cut.pads_lines ? 0 : unit.group - g.padding);
  AddOuterProducts({.a = lines.x(),
                    .b = lines.dy(),
                    .a_offset = first_pixel * g.channels + static_cast<int64_t>(unit.rows.begin),
                    .b_offset = static_cast<int64_t>(pixels.begin) * g.out_channels +
                                static_cast<int64_t>(columns.begin),
                    .a_step = static_cast<size_t>(g.stride * g.channels),
                    .b_step = static_cast<size_t>(g.out_channels),
                    .segments = lines.count(),
                    .depth = pixels.size(),
                    .rows = unit.rows.size(),
                    .columns = columns.size(),
                    .sums = sums,
                    .sums_stride = run.cut.unit_columns,
                    .pairs = run.pairs});
}

// Prefetches the `share`-th of `shares` equal shares of `count` floats. Always inlined: the
// compiler would treat a function that only prefetches as having no effect.
[[gnu::always_inline]] inline void PrefetchShare(const float* data, int64_t count, size_t share,
                                                 size_t shares) {
  constexpr size_t kCacheLineFloats = 16;
  const auto floats = static_cast<size_t>(count);
  const size_t end = floats * (share + 1) / shares;
  for (size_t i = floats * share / shares; i < end; i += kCacheLineFloats) {
    __builtin_prefetch(data + i, /*rw=*/0, /*locality=*/2);
  }
}

// Prefetches a share of the data of the next block of output lines while this one is summed. If
// there is little work per line, or some lines are not read, the hardware prefetcher does better.
[[gnu::always_inline]] inline void PrefetchBlock(const GradWeightRun& run, IndexRange lines,
                                                 size_t share, size_t shares) {
  constexpr size_t kFewShares = 8;
  const Conv2dGeometry& g = run.g;
  if (lines.size() == 0 || shares < kFewShares || g.kernel_height < g.stride) return;
  if (!run.x.stores_floats() || !run.dy.is_float()) return;
  const auto image_line = [&](size_t line) {
    const auto index = static_cast<int64_t>(line);
    const int64_t row = std::min(g.height, index % g.out_height * g.stride);
    return index / g.out_height * g.height + row;
  };
  const int64_t first = image_line(lines.begin);
  const int64_t last = image_line(lines.end - 1);
  PrefetchShare(run.x.InPlace(first), (last - first + 1) * g.width * g.channels, share, shares);
  const int64_t line_floats = g.out_width * g.out_channels;
  PrefetchShare(run.dy.floats() + static_cast<int64_t>(lines.begin) * line_floats,
                static_cast<int64_t>(lines.size()) * line_floats, share, shares);
}

void SumUnits(const GradWeightRun& run, IndexRange units, size_t part, size_t thread, float* sums) {
  std::fill_n(sums, units.size() * run.cut.unit_floats(), 0.0F);
  const IndexRange columns{UnitColumns(run, UnitAt(run.cut, units.begin)).begin,
                           UnitColumns(run, UnitAt(run.cut, units.end - 1)).end};
  GradWeightLines lines(run, columns, run.ThreadScratch(thread));
  std::optional<TileRegion> tiles;
  if (run.tiles) tiles.emplace(TileShapeOf(run.g));
  const IndexRange all = run.cut.parts.Piece(part);
  for (size_t begin = all.begin; begin < all.end; begin += run.cut.block_lines) {
    const size_t end = std::min(all.end, begin + run.cut.block_lines);
    const IndexRange next{end, std::min(all.end, end + run.cut.block_lines)};
    lines.SetBlock({begin, end});
    for (size_t index = units.begin; index < units.end; ++index) {
      const Unit unit = UnitAt(run.cut, index);
      lines.SetTapRow(unit.tap_row);
      PrefetchBlock(run, next, index - units.begin, units.size());
      AddUnit(run, unit, lines, sums + (index - units.begin) * run.cut.unit_floats());
    }
  }
}

// Adds the parts of a unit, `part_stride` floats apart, and writes them, transposed unless they
// were made in tiles.
void FinishUnit(const GradWeightRun& run, size_t index, float* sums, size_t part_stride,
                const GradWeightTarget& to) {
  const Unit unit = UnitAt(run.cut, index);
  const size_t floats = run.cut.unit_floats();
  for (size_t part = 1; part < run.cut.parts.count; ++part) {
    const float* others = sums + part * part_stride;
    for (size_t i = 0; i < floats; ++i) sums[i] += others[i];
  }
  const IndexRange columns = UnitColumns(run, unit);
  const auto window = static_cast<size_t>(run.g.window_elements());
  const size_t group =
      static_cast<size_t>(unit.tap_row) * run.cut.groups + static_cast<size_t>(unit.group);
  const Numbers out = to.numbers + ((columns.begin - to.first_column) * window +
                                    group * run.cut.rows.total + unit.rows.begin);
  if (run.tiles) {
    return EncodeNumberRows(sums, {columns.size(), unit.rows.size(), run.cut.rows.size, window},
                            out);
  }
  StoreTransposed(sums, {columns.size(), unit.rows.size(), run.cut.unit_columns, window}, out);
}

// Several parts: all parts sum one region at a time.
void SumRegion(const GradWeightRun& run, IndexRange region, const GradWeightTarget& to,
               ThreadPool& pool) {
  const size_t unit_floats = run.cut.unit_floats();
  const size_t part_stride = region.size() * unit_floats;
  float* sums = run.scratch_end - run.cut.parts.count * part_stride;
  const EqualPieces chunks = CutEqually(region.size(), run.blocks.chunk_units);
  pool.Run(chunks.count * run.cut.parts.count, [&](size_t chunk, size_t thread) {
    const size_t part = chunk / chunks.count;
    const IndexRange units = chunks.Piece(chunk % chunks.count);
    SumUnits(run, {region.begin + units.begin, region.begin + units.end}, part, thread,
             sums + part * part_stride + units.begin * unit_floats);
  });
  pool.Run(region.size(), [&](size_t unit, size_t /*thread*/) {
    FinishUnit(run, region.begin + unit, sums + unit * unit_floats, part_stride, to);
  });
}

// A single part: each thread finishes the units it sums. The first thread, which always has work,
// uses the end of the scratch.
void SumOnce(const GradWeightRun& run, IndexRange all, const GradWeightTarget& to,
             ThreadPool& pool) {
  const size_t unit_floats = run.cut.unit_floats();
  const EqualPieces chunks = CutEqually(all.size(), run.blocks.chunk_units);
  pool.Run(chunks.count, [&](size_t chunk, size_t thread) {
    const IndexRange piece = chunks.Piece(chunk);
    const IndexRange units{all.begin + piece.begin, all.begin + piece.end};
    float* sums = run.scratch_end - (thread + 1) * run.blocks.region_units * unit_floats;
    SumUnits(run, units, 0, thread, sums);
    for (size_t unit = units.begin; unit < units.end; ++unit) {
      FinishUnit(run, unit, sums + (unit - units.begin) * unit_floats, 0, to);
    }
  });
}

}  // namespace

void SumGradWeightUnits(const GradWeightRun& run, IndexRange units, const GradWeightTarget& to,
                        ThreadPool& pool) {
  if (run.cut.parts.count == 1) return SumOnce(run, units, to, pool);
  const EqualPieces regions = CutEqually(units.size(), run.blocks.region_units);
  for (size_t region = 0; region < regions.count; ++region) {
    const IndexRange piece = regions.Piece(region);
    SumRegion(run, {units.begin + piece.begin, units.begin + piece.end}, to, pool);
  }
}

}  // namespace thimble
