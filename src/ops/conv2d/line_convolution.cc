#include "thimble/ops/conv2d/line_convolution.h"

#include <algorithm>
#include <array>

#include "thimble/base/check.h"
#include "thimble/device/cpu/gemm/column_strip.h"
#include "thimble/device/cpu/gemm/micro_kernel.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/ops/conv2d/line_blocks.h"
#include "thimble/ops/conv2d/line_tiles.h"
#include "thimble/ops/conv2d/output_tile.h"

namespace thimble {
namespace {

// Rows of weights that a thread packs at a time.
constexpr size_t kPackedRows = 64;

// State shared by all parts of one phase. The threads' bands are at the beginning of the scratch;
// the weights end where the scratch ends, so that its last word is always used.
struct Run {
  const LineConvolution* convolution;
  size_t phase;
  WindowGrid grid;
  PixelOffsets pixels;
  LineBlocks blocks;
  MicroTile tile;
  size_t tile_depth;  // 0: not in tiles (gemm/tiles.h)
  float* bands;
  float* weights_end;
};

// The output channels and the part of the window whose weights are packed.
struct Region {
  IndexRange channels;
  IndexRange taps;      // tap rows
  IndexRange elements;  // of each tap row
  size_t depth() const { return taps.size() * elements.size(); }
  bool first() const { return taps.begin == 0 && elements.begin == 0; }
  // Whether sums are complete after this region.
  bool last(const WindowGrid& grid) const {
    return taps.end == static_cast<size_t>(grid.taps_high) &&
           elements.end == static_cast<size_t>(grid.row_elements());
  }
};

float* PackedWeights(const Run& run, const Region& region) {
  const size_t width = CeilDivide(region.channels.size(), run.tile.lanes) * run.tile.lanes;
  return run.weights_end - region.depth() * width;
}

void PackWeights(const Run& run, const Region& region, ThreadPool& pool) {
  if (region.depth() == 0) return;
  const size_t strips = CeilDivide(region.channels.size(), run.tile.columns);
  const size_t begin =
      region.taps.begin * static_cast<size_t>(run.grid.row_elements()) + region.elements.begin;
  const IndexRange depth{begin, begin + region.depth()};
  const EqualPieces pieces = CutEqually(depth.size(), kPackedRows);
  float* packed = PackedWeights(run, region);
  const auto weights = [&](const MatrixBlock& block, float* panel, size_t stride) {
    run.convolution->weights(run.phase, block, panel, stride);
  };
  pool.Run(strips * pieces.count, [&](size_t chunk, size_t /*thread*/) {
    const IndexRange piece = pieces.Piece(chunk / strips);
    PackColumnStrip(weights, run.tile, region.channels, chunk % strips, depth,
                    {begin + piece.begin, begin + piece.end}, packed);
  });
}

// Output lines [first_line, first_line + lines) of an image and pixels [column, column + columns)
// of each.
struct Chunk {
  int64_t image;
  int64_t first_line;
  int64_t lines;
  int64_t column;
  int64_t columns;
};

int64_t ImageRow(const WindowGrid& grid, int64_t i, int64_t tap) {
  return i * grid.stride + grid.top + tap;
}

// The tap rows of the region that are inside the image for output line i.
IndexRange TapsInside(const Run& run, const Region& region, int64_t i) {
  const int64_t top = ImageRow(run.grid, i, 0);
  const auto last = static_cast<int64_t>(region.taps.end);
  const int64_t begin = std::clamp(-top, static_cast<int64_t>(region.taps.begin), last);
  const int64_t end = std::clamp(run.grid.height - top, begin, last);
  return {static_cast<size_t>(begin), static_cast<size_t>(end)};
}

// Offset in the band of the image line that a tap row reads for a line of the chunk.
size_t BandOffset(const Run& run, const Region& region, int64_t line, size_t tap) {
  const size_t step = BandStep(run.grid, region.taps.size());
  const size_t slot = static_cast<size_t>(line) * step + tap - region.taps.begin;
  return slot * run.blocks.line_floats;
}

void PackBand(const Run& run, const Region& region, const Chunk& chunk, float* band) {
  const WindowGrid& grid = run.grid;
  const size_t step = BandStep(grid, region.taps.size());
  const int64_t first_pixel = chunk.column * grid.stride + grid.left;
  const int64_t pixels = (chunk.columns - 1) * grid.stride + grid.taps_wide;
  for (int64_t line = 0; line < chunk.lines; ++line) {
    const int64_t i = chunk.first_line + line;
    IndexRange taps = TapsInside(run, region, i);
    // The previous line has already packed the lines that both read.
    if (line > 0) taps.begin = std::max(taps.begin, region.taps.end - step);
    for (size_t tap = taps.begin; tap < taps.end; ++tap) {
      const int64_t row = ImageRow(grid, i, static_cast<int64_t>(tap));
      run.convolution->images(chunk.image * grid.height + row, first_pixel, pixels,
                              band + BandOffset(run, region, line, tap));
    }
  }
}

// The first pixel that a tap row reads for a line of the chunk.
const float* FirstPixel(const Run& run, const Region& region, const Chunk& chunk, int64_t line,
                        size_t tap, const float* band) {
  const WindowGrid& grid = run.grid;
  if (run.blocks.line_floats > 0) return band + BandOffset(run, region, line, tap);
  const int64_t row = ImageRow(grid, chunk.first_line + line, static_cast<int64_t>(tap));
  return run.convolution->images.InPlace(chunk.image * grid.height + row) +
         (chunk.column * grid.stride + grid.left) * grid.channels;
}

// The common part of the products of all lines with one column strip of the weights.
StripProduct ProductWithStrip(const Run& run, const Region& region, size_t strip) {
  const WindowGrid& grid = run.grid;
  const size_t begin = strip * run.tile.columns;
  StripProduct product;
  product.a_stride = static_cast<size_t>(grid.stride * grid.channels);
  product.a_segment_stride = run.blocks.line_floats > 0
                                 ? run.blocks.line_floats
                                 : static_cast<size_t>(grid.width * grid.channels);
  product.b = PackedWeights(run, region) + begin * region.depth();
  product.columns = std::min(run.tile.columns, region.channels.size() - begin);
  product.depth = region.elements.size();
  product.pairs = run.convolution->pairs;
  product.old = region.first() ? StripProduct::Old::kOverwrite : StripProduct::Old::kContinue;
  return product;
}

// Floats from one row of the packed strip to the next.
size_t StripWidth(const Run& run, const StripProduct& product) {
  return product.columns <= run.tile.lanes ? run.tile.lanes : run.tile.columns;
}

// Multiplies the windows of a line; `windows` is the first tap row of the first. The line is
// divided into strips of at most one tile.
void MultiplyLine(StripProduct product, const EqualPieces& strips, const float* windows,
                  const OutputLine& line) {
  OutputTile tile(line, product.columns);
  product.c_rows = tile.sums();
  product.added_rows = tile.added();
  for (size_t strip = 0; strip < strips.count; ++strip) {
    const IndexRange pixels = strips.Piece(strip);
    product.rows = pixels.size();
    product.a = windows;
    tile.MoveTo(pixels.begin, pixels.size());
    MultiplyStrip(product);
    tile.Store();
    windows += product.rows * product.a_stride;
  }
}

// The output from this place on. What is added comes last.
OutputLine OutputAt(const Run& run, const Region& region, size_t place) {
  const LineConvolution& c = *run.convolution;
  const bool adds = c.added.data != nullptr && region.last(run.grid);
  return {c.out + place, adds ? c.added + place : ConstNumbers{},
          static_cast<size_t>(run.pixels.pixel_stride)};
}

// Pixels that no tap reaches.
void FillZero(const Run& run, const Region& region, const Chunk& chunk) {
  for (int64_t line = 0; line < chunk.lines; ++line) {
    const size_t first =
        run.pixels.At(chunk.image, chunk.first_line + line, chunk.column) + region.channels.begin;
    for (size_t strip = 0; strip < region.channels.size(); strip += kMaxTileColumns) {
      const size_t columns = std::min(kMaxTileColumns, region.channels.size() - strip);
      const OutputLine output = OutputAt(run, region, first + strip);
      OutputTile tile(output, columns);
      for (size_t pixel = 0; pixel < static_cast<size_t>(chunk.columns); ++pixel) {
        tile.MoveTo(pixel, 1);
        for (size_t c = 0; c < columns; ++c) {
          tile.sums()[0][c] = 0.0F + (tile.added() != nullptr ? tile.added()[0][c] : 0.0F);
        }
        tile.Store();
      }
    }
  }
}

// The products of all lines of a chunk with one column strip: calls multiply(product, windows,
// output) for each line.
template <class Multiply>
void ForEachLine(const Run& run, const Region& region, const Chunk& chunk, size_t strip,
                 const float* band, const Multiply& multiply) {
  const StripProduct all_taps = ProductWithStrip(run, region, strip);
  const size_t width = StripWidth(run, all_taps);
  const size_t channel = region.channels.begin + strip * run.tile.columns;
  for (int64_t line = 0; line < chunk.lines; ++line) {
    const int64_t i = chunk.first_line + line;
    const IndexRange taps = TapsInside(run, region, i);
    StripProduct product = all_taps;
    product.b += (taps.begin - region.taps.begin) * product.depth * width;
    product.segments = taps.size();
    multiply(product,
             FirstPixel(run, region, chunk, line, taps.begin, band) + region.elements.begin,
             OutputAt(run, region, run.pixels.At(chunk.image, i, chunk.column) + channel));
  }
}

void MultiplyInTiles(const Run& run, const Region& region, const Chunk& chunk, size_t strips,
                     const float* band) {
  const auto columns = static_cast<size_t>(chunk.columns);
  const TileShape shape{CutEqually(columns, kTileSide).size, run.tile_depth};
  const TileRegion tiles(shape);
  for (size_t strip = 0; strip < strips; ++strip) {
    const StripProduct all_taps = ProductWithStrip(run, region, strip);
    LineTiles lines(shape, all_taps, StripWidth(run, all_taps));
    ForEachLine(run, region, chunk, strip, band,
                [&](const StripProduct& product, const float* windows, const OutputLine& line) {
                  lines.Multiply(product, windows, columns, line);
                });
    lines.Finish();
  }
}

void MultiplyChunk(const Run& run, const Region& region, const Chunk& chunk, size_t thread) {
  if (region.depth() == 0) return FillZero(run, region, chunk);
  float* band = run.bands + thread * run.blocks.band_floats;
  if (run.blocks.line_floats > 0) PackBand(run, region, chunk, band);
  const size_t strips = CeilDivide(region.channels.size(), run.tile.columns);
  if (run.tile_depth > 0) return MultiplyInTiles(run, region, chunk, strips, band);
  const EqualPieces pixels = CutEqually(static_cast<size_t>(chunk.columns), run.tile.rows);
  for (size_t strip = 0; strip < strips; ++strip) {
    ForEachLine(run, region, chunk, strip, band,
                [&](const StripProduct& product, const float* windows, const OutputLine& line) {
                  MultiplyLine(product, pixels, windows, line);
                });
  }
}

// Chunks of a grid, numbered.
class Chunks {
 public:
  Chunks(const WindowGrid& grid, const LineBlocks& blocks)
      : batch_(static_cast<size_t>(grid.batch)),
        lines_(Pieces(grid.rows, blocks.lines)),
        columns_(Pieces(grid.columns, blocks.columns)) {}
  size_t count() const { return batch_ * lines_.count * columns_.count; }
  // The part of chunk `index` inside the grid, which may be that of a later phase; may be empty.
  Chunk At(size_t index, const WindowGrid& grid) const {
    const IndexRange across = columns_.Piece(index % columns_.count);
    const IndexRange down = lines_.Piece(index / columns_.count % lines_.count);
    const auto image = static_cast<int64_t>(index / columns_.count / lines_.count);
    return {image, static_cast<int64_t>(down.begin), Within(down, grid.rows),
            static_cast<int64_t>(across.begin), Within(across, grid.columns)};
  }

 private:
  static EqualPieces Pieces(int64_t total, size_t size) {
    return {static_cast<size_t>(total), size, CeilDivide(static_cast<size_t>(total), size)};
  }
  static int64_t Within(IndexRange range, int64_t end) {
    return std::max<int64_t>(
        0, std::min(static_cast<int64_t>(range.end), end) - static_cast<int64_t>(range.begin));
  }

  size_t batch_;
  EqualPieces lines_;
  EqualPieces columns_;
};

// Calls visit with each piece of [0, total), at least once.
template <class Visit>
void ForEachPiece(size_t total, size_t size, Visit visit) {
  size_t begin = 0;
  do {
    const size_t end = std::min(total, begin + size);
    visit(IndexRange{begin, end});
    begin = end;
  } while (begin < total);
}

// A grid that covers all phases, which differ by a row or a column.
WindowGrid Hull(std::span<const LinePhase> phases) {
  WindowGrid hull = phases[0].grid;
  for (const LinePhase& phase : phases) {
    hull.rows = std::max(hull.rows, phase.grid.rows);
    hull.columns = std::max(hull.columns, phase.grid.columns);
  }
  return hull;
}

// All phases together: their chunks and the positions of their weights.
struct JointBlocks {
  std::array<LineBlocks, kMaxLinePhases> phases;
  size_t band_floats = 0;
  size_t weight_floats = 0;
  size_t ScratchBytes(size_t threads) const {
    return (weight_floats + threads * band_floats) * sizeof(float);
  }
};

JointBlocks MakeJointBlocks(std::span<const LinePhase> phases, const LineBlocks& chunk) {
  JointBlocks joint;
  for (size_t p = 0; p < phases.size(); ++p) {
    joint.phases[p] = BlocksOfPhase(phases[p].grid, chunk);
    joint.band_floats = std::max(joint.band_floats, joint.phases[p].band_floats);
    joint.weight_floats += joint.phases[p].weight_floats;
  }
  for (size_t p = 0; p < phases.size(); ++p) joint.phases[p].band_floats = joint.band_floats;
  return joint;
}

// Uses chunks of at least two lines. If they need more than `scratch_bytes`, phases must run
// separately.
JointBlocks ChooseJointBlocks(std::span<const LinePhase> phases, size_t out_channels,
                              size_t threads, size_t scratch_bytes) {
  LineBlocks chunk = LargestLineBlocks(Hull(phases), out_channels);
  for (;;) {
    const JointBlocks joint = MakeJointBlocks(phases, chunk);
    if (joint.ScratchBytes(threads) <= scratch_bytes || chunk.lines <= 2) return joint;
    chunk.lines = CeilDivide(chunk.lines, 2);
  }
}

Run MakeRun(const LineConvolution& c, size_t phase, const LineBlocks& blocks,
            std::span<std::byte> scratch) {
  return {&c,
          phase,
          c.phases[phase].grid,
          c.phases[phase].pixels,
          blocks,
          ActiveMicroTile(),
          c.pairs && MultipliesTiles() ? RowTileDepth(c.phases[phase].grid) : 0,
          reinterpret_cast<float*>(scratch.data()),
          reinterpret_cast<float*>(scratch.data() + scratch.size())};
}

void RunJointly(const LineConvolution& c, const JointBlocks& joint, std::span<std::byte> scratch,
                ThreadPool& pool) {
  std::array<Run, kMaxLinePhases> runs;
  std::array<Region, kMaxLinePhases> regions;
  size_t packed_after = 0;
  for (size_t p = 0; p < c.phases.size(); ++p) {
    runs[p] = MakeRun(c, p, joint.phases[p], scratch);
    runs[p].weights_end -= packed_after;
    packed_after += joint.phases[p].weight_floats;
    regions[p] = {{0, static_cast<size_t>(c.out_channels)},
                  {0, joint.phases[p].tap_rows},
                  {0, joint.phases[p].row_elements}};
    PackWeights(runs[p], regions[p], pool);
  }
  const Chunks chunks(Hull(c.phases), joint.phases[0]);
  pool.Run(chunks.count(), [&](size_t index, size_t thread) {
    for (size_t p = 0; p < c.phases.size(); ++p) {
      const Chunk chunk = chunks.At(index, runs[p].grid);
      if (chunk.lines > 0 && chunk.columns > 0) MultiplyChunk(runs[p], regions[p], chunk, thread);
    }
  });
}

// One phase, region by region.
void RunPhase(const Run& run, ThreadPool& pool) {
  const WindowGrid& grid = run.grid;
  const Chunks chunks(grid, run.blocks);
  const auto multiply_region = [&](const Region& region) {
    PackWeights(run, region, pool);
    pool.Run(chunks.count(), [&](size_t index, size_t thread) {
      MultiplyChunk(run, region, chunks.At(index, grid), thread);
    });
  };
  const auto channels = static_cast<size_t>(run.convolution->out_channels);
  ForEachPiece(channels, run.blocks.out_channels, [&](IndexRange out_channels) {
    ForEachPiece(static_cast<size_t>(grid.taps_high), run.blocks.tap_rows, [&](IndexRange taps) {
      ForEachPiece(static_cast<size_t>(grid.row_elements()), run.blocks.row_elements,
                   [&](IndexRange elements) {
                     multiply_region({out_channels, taps, elements});
                   });
    });
  });
}

// Whether output and image correspond pixel by pixel and can be processed as one long line.
bool IsOneLine(const LinePhase& phase) {
  const WindowGrid& g = phase.grid;
  return g.taps_high == 1 && g.taps_wide == 1 && g.stride == 1 && g.top == 0 && g.left == 0 &&
         g.rows == g.height && g.columns == g.width &&
         phase.pixels.line_stride == g.width * phase.pixels.pixel_stride &&
         phase.pixels.image_stride == g.height * phase.pixels.line_stride;
}

LinePhase OneLine(const LinePhase& phase) {
  LinePhase flat = phase;
  flat.grid.width = flat.grid.columns = phase.grid.batch * phase.grid.height * phase.grid.width;
  flat.grid.batch = flat.grid.height = flat.grid.rows = 1;
  return flat;
}

}  // namespace

size_t LineConvolutionScratchBytes(std::span<const LinePhase> phases, int64_t out_channels,
                                   size_t threads, size_t scratch_bytes_per_thread) {
  if (phases[0].grid.batch == 0 || out_channels == 0) return 0;
  const auto channels = static_cast<size_t>(out_channels);
  const size_t limit = threads * scratch_bytes_per_thread;
  size_t bytes = ChooseJointBlocks(phases, channels, threads, limit).ScratchBytes(threads);
  if (bytes <= limit) return bytes;
  bytes = 0;
  for (const LinePhase& phase : phases) {
    bytes = std::max(bytes,
                     ChooseLineBlocks(phase.grid, channels, threads, limit).ScratchBytes(threads));
  }
  return bytes;
}

void RunLineConvolution(const LineConvolution& convolution, std::span<std::byte> scratch,
                        ThreadPool& pool) {
  LineConvolution c = convolution;
  const auto channels = static_cast<size_t>(c.out_channels);
  if (c.phases[0].grid.batch == 0 || channels == 0) return;
  const LinePhase flat = OneLine(c.phases[0]);
  if (c.phases.size() == 1 && IsOneLine(c.phases[0])) {
    c.phases = {&flat, 1};
    c.images = c.images.OneLine(flat.grid.width);
  }
  const auto threads = static_cast<size_t>(pool.num_threads());
  const JointBlocks joint = ChooseJointBlocks(c.phases, channels, threads, scratch.size());
  if (joint.ScratchBytes(threads) <= scratch.size()) return RunJointly(c, joint, scratch, pool);
  for (size_t p = 0; p < c.phases.size(); ++p) {
    const LineBlocks blocks = ChooseLineBlocks(c.phases[p].grid, channels, threads, scratch.size());
    THIMBLE_CHECK(blocks.ScratchBytes(threads) <= scratch.size(),
                  "got {} bytes of scratch, expected at least {}", scratch.size(),
                  blocks.ScratchBytes(threads));
    RunPhase(MakeRun(c, p, blocks, scratch), pool);
  }
}

}  // namespace thimble
