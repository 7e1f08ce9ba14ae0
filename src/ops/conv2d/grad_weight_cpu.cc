// conv2d_grad_weight on the CPU: dw (window, O) = sum over output pixels of the outer product of
// the window's elements and dy at the pixel. Lines of x and dy are read in place if they store
// floats. With pairs, the lines are those of two neighbouring output lines, combined: each pair of
// numbers is the same place in both, so that every tap meets the same pairs. In tiles, dy is
// transposed in addition, and dw (O, window) = dy (O, pixels) * windows (pixels, window).
#include <algorithm>
#include <array>
#include <optional>

#include "thimble/base/check.h"
#include "thimble/device/cpu/gemm/outer_product.h"
#include "thimble/device/cpu/gemm/packer.h"
#include "thimble/device/cpu/gemm/tiles.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/device/cpu/thread_pool.h"
#include "thimble/ops/conv2d/conv2d.h"
#include "thimble/ops/conv2d/grad_weight_blocks.h"
#include "thimble/ops/conv2d/line_packer.h"

namespace thimble {
namespace {

// State shared by all parts of a run. The threads' lines are at the beginning of the scratch; the
// sums end where the scratch ends, so that its last word is always used.
struct Summation {
  const Conv2dGeometry& g;
  const bool pairs;
  const bool tiles;
  const GradWeightCut cut;
  const GradWeightBlocks blocks;
  const LinePacker x;
  const ConstNumbers dy;
  const Numbers dw;
  float* scratch;
  float* scratch_end;
};

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

IndexRange UnitColumns(const Summation& run, const Unit& unit) {
  const size_t begin = unit.column_block * run.cut.unit_columns;
  return {begin, std::min(static_cast<size_t>(run.g.out_channels), begin + run.cut.unit_columns)};
}

// The image lines of a block of output lines for one tap row; lines outside the image are skipped.
class BlockLines {
 public:
  // `columns`: the output channels that are read.
  BlockLines(const Summation& run, IndexRange columns, float* thread_scratch)
      : run_(run),
        columns_(columns),
        band_(thread_scratch),
        copied_(thread_scratch + run.blocks.band_floats) {}

  // Output lines are numbered consecutively over the batch.
  void SetBlock(IndexRange lines) {
    lines_ = lines;
    tap_row_ = -1;
    if (run_.pairs) return PackPairs();
    if (run_.blocks.line_floats > 0) PackBand();
    if (!run_.dy.is_float()) CopyOutputLines(lines);
  }

  void SetTapRow(int64_t tap_row) {
    if (tap_row == tap_row_) return;
    tap_row_ = tap_row;
    count_ = 0;
    if (run_.pairs) return SetPairs(tap_row);
    for (size_t line = lines_.begin; line < lines_.end; ++line) {
      const int64_t image_line = ImageLine(line, tap_row);
      if (image_line < 0) continue;
      x_[count_] =
          run_.blocks.line_floats > 0 ? BandLine(line, tap_row) : run_.x.InPlace(image_line);
      dy_[count_++] = OutputLine(line);
    }
  }

  size_t count() const { return count_; }
  const float* const* x() const { return x_.data(); }
  const float* const* dy() const { return dy_.data(); }
  const IndexRange& columns() const { return columns_; }

 private:
  // Also numbered over the batch; negative outside the image. `further`: the line that the tap row
  // reads that many output lines further down the same image.
  int64_t ImageLine(size_t line, int64_t tap_row, int64_t further = 0) const {
    const Conv2dGeometry& g = run_.g;
    const auto image = static_cast<int64_t>(line) / g.out_height;
    const int64_t out_row = static_cast<int64_t>(line) % g.out_height + further;
    const int64_t row = out_row * g.stride - g.padding + tap_row;
    return row < 0 || row >= g.height ? -1 : image * g.height + row;
  }

  float* BandLine(size_t line, int64_t tap_row) const {
    const size_t slot = BandSlot(run_.g, lines_.begin, line, static_cast<size_t>(tap_row));
    return band_ + slot * run_.blocks.line_floats;
  }

  // The pixels of a packed line.
  int64_t FirstPixel() const { return run_.cut.pads_lines ? -run_.g.padding : 0; }
  int64_t NumPixels() const {
    const Conv2dGeometry& g = run_.g;
    return run_.cut.pads_lines ? (g.out_width - 1) * g.stride + g.kernel_width : g.width;
  }

  void PackBand() const {
    const Conv2dGeometry& g = run_.g;
    const int64_t step = std::min(g.stride, g.kernel_height);
    for (size_t line = lines_.begin; line < lines_.end; ++line) {
      const bool is_first = line == lines_.begin || static_cast<int64_t>(line) % g.out_height == 0;
      for (int64_t tap = is_first ? 0 : g.kernel_height - step; tap < g.kernel_height; ++tap) {
        const int64_t image_line = ImageLine(line, tap);
        if (image_line >= 0) run_.x(image_line, FirstPixel(), NumPixels(), BandLine(line, tap));
      }
    }
  }

  // Calls visit(line, is_single, is_first) for each pair of output lines, and for the last line of
  // an image or of the block if it remains alone; is_first: no pair of the same image came before.
  template <class Visit>
  void ForEachPair(const Visit& visit) const {
    const auto out_height = static_cast<size_t>(run_.g.out_height);
    bool is_first = true;
    for (size_t line = lines_.begin; line < lines_.end;) {
      const bool is_single = line + 1 == lines_.end || (line + 1) % out_height == 0;
      visit(line, is_single, is_first);
      line += is_single ? 1 : 2;
      is_first = line % out_height == 0;
    }
  }

  // A pair of image lines is packed in the slot of its first line; where that is also the first
  // line of an earlier pair, their second lines are the same too.
  void PackPairs() const {
    const Conv2dGeometry& g = run_.g;
    const size_t floats = OutputLineFloats();
    const int64_t step = std::min(g.stride, g.kernel_height);
    float* dy = copied_;
    ForEachPair([&](size_t line, bool is_single, bool is_first) {
      const int64_t first_tap = is_first ? 0 : std::max<int64_t>(0, g.kernel_height - 2 * step);
      for (int64_t tap = first_tap; tap < g.kernel_height; ++tap) {
        run_.x.PackLinePair(ImageLine(line, tap), ImageLine(line, tap, 1), FirstPixel(),
                            NumPixels(), BandLine(line, tap));
      }
      const auto* numbers = static_cast<const BF16*>(run_.dy.data) + line * floats;
      const BF16* second = is_single ? nullptr : numbers + floats;
      if (run_.tiles) {
        TransposePairs(numbers, second, dy);
      } else {
        PairNumbers(numbers, second, floats, dy);
      }
      dy += floats;
    });
    std::fill_n(dy, kMaxLanes, 0.0F);
  }

  // to (columns, pixels) = pairs of the numbers of two output lines.
  void TransposePairs(const BF16* first, const BF16* second, float* to) const {
    alignas(64) float pairs[kMaxTiledChannels];
    const auto channels = static_cast<size_t>(run_.g.out_channels);
    const auto width = static_cast<size_t>(run_.g.out_width);
    const TransposedPacker transpose(pairs, channels);
    const size_t step = kMaxTiledChannels / channels;
    for (size_t pixel = 0; pixel < width; pixel += step) {
      const size_t pixels = std::min(step, width - pixel);
      const size_t begin = pixel * channels;
      PairNumbers(first + begin, second == nullptr ? nullptr : second + begin, pixels * channels,
                  pairs);
      transpose({columns_.begin, columns_.size(), 0, pixels}, to + pixel, width);
    }
  }

  void SetPairs(int64_t tap_row) {
    const float* dy = copied_;
    ForEachPair([&](size_t line, bool /*is_single*/, bool /*is_first*/) {
      if (ImageLine(line, tap_row) >= 0 || ImageLine(line, tap_row, 1) >= 0) {
        x_[count_] = BandLine(line, tap_row);
        dy_[count_++] = dy;
      }
      dy += OutputLineFloats();
    });
  }

  size_t OutputLineFloats() const {
    return static_cast<size_t>(run_.g.out_width * run_.g.out_channels);
  }

  // A vector may reach beyond the last of them, into zeros.
  void CopyOutputLines(IndexRange lines) const {
    const size_t floats = OutputLineFloats();
    DecodeNumbers(run_.dy + lines.begin * floats, lines.size() * floats, copied_);
    std::fill_n(copied_ + lines.size() * floats, kMaxLanes, 0.0F);
  }

  const float* OutputLine(size_t line) const {
    const size_t floats = OutputLineFloats();
    if (!run_.dy.is_float()) return copied_ + (line - lines_.begin) * floats;
    const auto lines = static_cast<size_t>(run_.g.batch * run_.g.out_height);
    const size_t first_copied = lines - NumCopiedLines(run_.g);
    if (line >= first_copied) {
      // Copied again for each tap row; it is little data.
      CopyOutputLines({first_copied, lines});
      return copied_ + (line - first_copied) * floats;
    }
    return (run_.dy + line * floats).floats();
  }

  const Summation& run_;
  IndexRange columns_;
  float* band_;
  float* copied_;
  IndexRange lines_;
  int64_t tap_row_ = -1;
  size_t count_ = 0;
  std::array<const float*, kMaxBlockLines> x_;
  std::array<const float*, kMaxBlockLines> dy_;
};

// The output pixels of a line for which the group is inside the image.
IndexRange GroupPixels(const Summation& run, const Unit& unit) {
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

void AddUnitInTiles(const Summation& run, const Unit& unit, const BlockLines& lines, float* sums) {
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

void AddUnit(const Summation& run, const Unit& unit, const BlockLines& lines, float* sums) {
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
[[gnu::always_inline]] inline void PrefetchBlock(const Summation& run, IndexRange lines,
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

void SumUnits(const Summation& run, IndexRange units, size_t part, size_t thread, float* sums) {
  std::fill_n(sums, units.size() * run.cut.unit_floats(), 0.0F);
  const IndexRange columns{UnitColumns(run, UnitAt(run.cut, units.begin)).begin,
                           UnitColumns(run, UnitAt(run.cut, units.end - 1)).end};
  BlockLines lines(run, columns, run.scratch + thread * run.blocks.floats_per_thread());
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

// Adds the parts of a unit, `part_stride` floats apart, and writes them to dw, transposed unless
// they were made in tiles.
void FinishUnit(const Summation& run, size_t index, float* sums, size_t part_stride) {
  const Unit unit = UnitAt(run.cut, index);
  const size_t floats = run.cut.unit_floats();
  for (size_t part = 1; part < run.cut.parts.count; ++part) {
    const float* others = sums + part * part_stride;
    for (size_t i = 0; i < floats; ++i) sums[i] += others[i];
  }
  const Conv2dGeometry& g = run.g;
  const IndexRange columns = UnitColumns(run, unit);
  const auto window = static_cast<size_t>(g.window_elements());
  const size_t group =
      static_cast<size_t>(unit.tap_row) * run.cut.groups + static_cast<size_t>(unit.group);
  const Numbers out =
      run.dw + (columns.begin * window + group * run.cut.rows.total + unit.rows.begin);
  if (run.tiles) {
    return EncodeNumberRows(sums, {columns.size(), unit.rows.size(), run.cut.rows.size, window},
                            out);
  }
  StoreTransposed(sums, {columns.size(), unit.rows.size(), run.cut.unit_columns, window}, out);
}

// Several parts: all parts sum one region at a time.
void SumRegion(const Summation& run, IndexRange region, ThreadPool& pool) {
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
    FinishUnit(run, region.begin + unit, sums + unit * unit_floats, part_stride);
  });
}

// A single part: each thread finishes the units it sums. The first thread, which always has work,
// uses the end of the scratch.
void SumOnce(const Summation& run, ThreadPool& pool) {
  const size_t unit_floats = run.cut.unit_floats();
  const EqualPieces chunks = CutEqually(run.cut.num_units(), run.blocks.chunk_units);
  pool.Run(chunks.count, [&](size_t chunk, size_t thread) {
    const IndexRange units = chunks.Piece(chunk);
    float* sums = run.scratch_end - (thread + 1) * run.blocks.region_units * unit_floats;
    SumUnits(run, units, 0, thread, sums);
    for (size_t unit = units.begin; unit < units.end; ++unit) {
      FinishUnit(run, unit, sums + (unit - units.begin) * unit_floats, 0);
    }
  });
}

// A line without a partner is paired with zeros, so the number of lines does not matter.
bool CanPairLines(DType x, DType dy) { return CanBePaired(x, dy, /*depth=*/0); }

GradWeightStorage StorageOf(const Conv2dGeometry& g, DType x, DType dy, bool pairs, bool tiles) {
  pairs = pairs && CanPairLines(x, dy);
  return {.short_x = IsShortNumber(x),
          .short_dy = IsShortNumber(dy),
          .pairs = pairs,
          .tiles = pairs && tiles && CanBeTiled(g)};
}

}  // namespace

size_t Conv2dGradWeightCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  const Conv2dGeometry g = Conv2dGradWeightGeometryOf(call).value();
  if (g.flops() == 0) return 0;
  const auto threads = static_cast<size_t>(limits.threads);
  const DType x = call.input_type(0);
  const DType dy = call.input_type(1);
  const auto bytes = [&](bool pairs, bool tiles) {
    return ChooseGradWeightBlocks(g, StorageOf(g, x, dy, pairs, tiles), threads,
                                  threads * limits.scratch_bytes_per_thread)
        .ScratchBytes(threads);
  };
  return std::max({bytes(false, false), bytes(true, false), bytes(true, true)});
}

void Conv2dGradWeightCpu::Run(const KernelCall& call) {
  const Shape inputs[] = {call.in_shape(0), call.in_shape(1)};
  const Conv2dGeometry g = Conv2dGradWeightGeometryOf({inputs, {}, call.attributes}).value();
  if (g.flops() == 0) {
    ParallelNumbers(call.pool, {}, call.outputs,
                    [](const NumberPiece& piece) { std::fill_n(piece.out[0], piece.count, 0.0F); });
    return;
  }
  const DType x = call.inputs[0].dtype;
  const DType dy = call.inputs[1].dtype;
  const GradWeightStorage storage = StorageOf(g, x, dy, MultipliesPairs(), MultipliesTiles());
  const auto threads = static_cast<size_t>(call.pool.num_threads());
  const Summation run{g,
                      storage.pairs,
                      storage.tiles,
                      CutGradWeight(g, storage),
                      ChooseGradWeightBlocks(g, storage, threads, call.scratch.size()),
                      LinePacker(ConstNumbersOf(call.inputs[0]), g.width, g.channels),
                      ConstNumbersOf(call.inputs[1]),
                      NumbersOf(call.outputs[0]),
                      reinterpret_cast<float*>(call.scratch.data()),
                      reinterpret_cast<float*>(call.scratch.data() + call.scratch.size())};
  THIMBLE_CHECK(run.blocks.ScratchBytes(threads) <= call.scratch.size(),
                "got {} bytes of scratch, expected at least {}", call.scratch.size(),
                run.blocks.ScratchBytes(threads));
  if (run.cut.parts.count == 1) return SumOnce(run, call.pool);
  const EqualPieces regions = CutEqually(run.cut.num_units(), run.blocks.region_units);
  for (size_t region = 0; region < regions.count; ++region) {
    SumRegion(run, regions.Piece(region), call.pool);
  }
}

}  // namespace thimble
