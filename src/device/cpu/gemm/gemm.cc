#include "thimble/device/cpu/gemm/gemm.h"

#include <algorithm>
#include <array>

#include "thimble/base/check.h"
#include "thimble/device/cpu/gemm/column_strip.h"
#include "thimble/device/cpu/gemm/micro_kernel.h"

namespace thimble {
namespace {

using StripAddresses = std::array<float*, kMaxTileRows>;

// What both variants of the product need. The threads' panels are at the beginning of the scratch;
// the shared part ends where the scratch ends, so that the last word is always used.
struct Run {
  const GemmProblem& problem;
  const DepthCut cut;
  const GemmBlocks blocks;
  const MicroTile tile;
  float* scratch;
  float* scratch_end;
  ThreadPool& pool;

  float* ThreadScratch(size_t thread) const { return scratch + thread * blocks.floats_per_thread; }
};

// The addresses of the packed depth blocks [first, last) of the columns.
struct SharedPanels {
  SharedPanels(const Run& run, IndexRange columns, size_t first, size_t last)
      : width(CeilDivide(columns.size(), run.tile.lanes) * run.tile.lanes),
        depth_begin(run.cut.Block(0, first).begin),
        data(run.scratch_end - (run.cut.Block(0, last - 1).end - depth_begin) * width) {}
  float* Block(IndexRange depth) const { return data + (depth.begin - depth_begin) * width; }

  size_t width;
  size_t depth_begin;
  float* data;
};

struct PackedColumns {
  const float* data;
  size_t columns;
  IndexRange depth;
};

// Packs the rows of A for the depth block and multiplies.
void MultiplyRows(const Run& run, IndexRange rows, const PackedColumns& b, float* a_panel,
                  float* const* c_rows, bool add) {
  run.problem.a({rows.begin, rows.size(), b.depth.begin, b.depth.size()}, a_panel, kPanelDepth);
  MultiplyStrip({.a = a_panel,
                 .a_stride = kPanelDepth,
                 .b = b.data,
                 .c_rows = c_rows,
                 .rows = rows.size(),
                 .columns = b.columns,
                 .depth = b.depth.size(),
                 .old = add ? StripProduct::Old::kAdd : StripProduct::Old::kOverwrite});
}

// Shared columns: packs depth blocks [first, last) of the columns, on all threads.
void PackShared(const Run& run, IndexRange columns, size_t first, size_t last) {
  const size_t strips = CeilDivide(columns.size(), run.tile.columns);
  const SharedPanels panels(run, columns, first, last);
  run.pool.Run(strips * (last - first), [&](size_t chunk, size_t /*thread*/) {
    const IndexRange depth = run.cut.Block(0, first + chunk / strips);
    PackColumnStrip(run.problem.b, run.tile, columns, chunk % strips, depth, depth,
                    panels.Block(depth));
  });
}

void MultiplyShared(const Run& run, IndexRange columns, size_t first, size_t last) {
  const EqualPieces strips = CutEqually(run.problem.shape.rows, run.tile.rows);
  // About 8 strips per chunk if there are many, one if there are few.
  const EqualPieces chunks = CutEqually(strips.count, std::clamp<size_t>(strips.count / 32, 1, 8));
  const SharedPanels panels(run, columns, first, last);
  run.pool.Run(chunks.count, [&](size_t chunk, size_t thread) {
    const IndexRange range = chunks.Piece(chunk);
    for (size_t strip = range.begin; strip < range.end; ++strip) {
      const IndexRange rows = strips.Piece(strip);
      StripAddresses c_rows;
      run.problem.c(rows.begin, rows.size(), c_rows.data());
      for (size_t r = 0; r < rows.size(); ++r) c_rows[r] += columns.begin;
      for (size_t block = first; block < last; ++block) {
        const IndexRange depth = run.cut.Block(0, block);
        MultiplyRows(run, rows, {panels.Block(depth), columns.size(), depth},
                     run.ThreadScratch(thread), c_rows.data(), block != 0);
      }
    }
  });
}

void RunSharedColumns(const Run& run) {
  const size_t num_blocks = run.cut.NumBlocks(0);
  const size_t columns = run.problem.shape.columns;
  for (size_t begin = 0; begin < columns; begin += run.blocks.region_columns) {
    const IndexRange region{begin, std::min(columns, begin + run.blocks.region_columns)};
    for (size_t first = 0; first < num_blocks; first += run.blocks.packed_depth_blocks) {
      const size_t last = std::min(num_blocks, first + run.blocks.packed_depth_blocks);
      PackShared(run, region, first, last);
      MultiplyShared(run, region, first, last);
    }
  }
}

// Split depth: the rectangle of C that the parts sum up together.
struct Region {
  IndexRange rows;
  IndexRange columns;
};

// Partial sums of part >= 1 for a row of the region, one part after the other.
float* PartialRow(const Run& run, const Region& region, size_t part, size_t row) {
  const size_t all_rows = (run.cut.parts.count - 1) * region.rows.size();
  const size_t index = (part - 1) * region.rows.size() + row;
  return run.scratch_end - (all_rows - index) * region.columns.size();
}

void SumPart(const Run& run, const Region& region, IndexRange columns, size_t part,
             float* thread_scratch) {
  float* a_panel = thread_scratch;
  float* b_packed = thread_scratch + kMaxTileRows * kPanelDepth;
  const EqualPieces strips = CutEqually(region.rows.size(), run.tile.rows);
  for (size_t block = 0; block < run.cut.NumBlocks(part); ++block) {
    const IndexRange depth = run.cut.Block(part, block);
    for (size_t strip = 0; strip < CeilDivide(columns.size(), run.tile.columns); ++strip) {
      PackColumnStrip(run.problem.b, run.tile, columns, strip, depth, depth, b_packed);
    }
    for (size_t strip = 0; strip < strips.count; ++strip) {
      const IndexRange within = strips.Piece(strip);
      const IndexRange rows{region.rows.begin + within.begin, region.rows.begin + within.end};
      StripAddresses c_rows;
      if (part == 0) run.problem.c(rows.begin, rows.size(), c_rows.data());
      for (size_t r = 0; r < rows.size(); ++r) {
        c_rows[r] = part == 0 ? c_rows[r] + columns.begin
                              : PartialRow(run, region, part, within.begin + r) + columns.begin -
                                    region.columns.begin;
      }
      MultiplyRows(run, rows, {b_packed, columns.size(), depth}, a_panel, c_rows.data(),
                   block != 0);
    }
  }
}

void AddParts(const Run& run, const Region& region) {
  run.pool.Run(region.rows.size(), [&](size_t row, size_t /*thread*/) {
    float* c = nullptr;
    run.problem.c(region.rows.begin + row, 1, &c);
    c += region.columns.begin;
    for (size_t part = 1; part < run.cut.parts.count; ++part) {
      const float* partial = PartialRow(run, region, part, row);
      for (size_t j = 0; j < region.columns.size(); ++j) c[j] += partial[j];
    }
  });
}

void RunSplitDepth(const Run& run) {
  const GemmShape& shape = run.problem.shape;
  const GemmBlocks& blocks = run.blocks;
  for (size_t row = 0; row < shape.rows; row += blocks.region_rows) {
    for (size_t column = 0; column < shape.columns; column += blocks.region_columns) {
      const Region region{{row, std::min(shape.rows, row + blocks.region_rows)},
                          {column, std::min(shape.columns, column + blocks.region_columns)}};
      const size_t tiles = CeilDivide(region.columns.size(), blocks.tile_columns);
      run.pool.Run(tiles * run.cut.parts.count, [&](size_t chunk, size_t thread) {
        const size_t begin = column + (chunk % tiles) * blocks.tile_columns;
        const size_t end = std::min(region.columns.end, begin + blocks.tile_columns);
        SumPart(run, region, {begin, end}, chunk / tiles, run.ThreadScratch(thread));
      });
      AddParts(run, region);
    }
  }
}

void FillZero(const GemmProblem& problem, ThreadPool& pool) {
  const EqualPieces strips = CutEqually(problem.shape.rows, kMaxTileRows);
  pool.Run(strips.count, [&](size_t strip, size_t /*thread*/) {
    const IndexRange rows = strips.Piece(strip);
    StripAddresses c_rows;
    problem.c(rows.begin, rows.size(), c_rows.data());
    for (size_t r = 0; r < rows.size(); ++r) {
      std::fill_n(c_rows[r], problem.shape.columns, 0.0F);
    }
  });
}

}  // namespace

size_t GemmScratchBytes(const GemmShape& shape, size_t threads, size_t scratch_bytes_per_thread) {
  if (shape.rows == 0 || shape.columns == 0 || shape.depth == 0) return 0;
  return ChooseBlocks(shape, threads, threads * scratch_bytes_per_thread).ScratchBytes(threads);
}

void Gemm(const GemmProblem& problem, std::span<std::byte> scratch, ThreadPool& pool) {
  const GemmShape& shape = problem.shape;
  if (shape.rows == 0 || shape.columns == 0) return;
  if (shape.depth == 0) return FillZero(problem, pool);
  const auto threads = static_cast<size_t>(pool.num_threads());
  const Run run{problem,
                CutDepth(shape),
                ChooseBlocks(shape, threads, scratch.size()),
                ActiveMicroTile(),
                reinterpret_cast<float*>(scratch.data()),
                reinterpret_cast<float*>(scratch.data() + scratch.size()),
                pool};
  THIMBLE_CHECK(run.blocks.ScratchBytes(threads) <= scratch.size(),
                "got {} bytes of scratch, expected at least {}", scratch.size(),
                run.blocks.ScratchBytes(threads));
  run.cut.parts.count == 1 ? RunSharedColumns(run) : RunSplitDepth(run);
}

}  // namespace thimble
