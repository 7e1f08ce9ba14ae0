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
struct GemmRun {
  const GemmProblem& problem;
  DepthCut cut;
  GemmBlocks blocks;
  MicroTile tile;
  float* scratch;
  float* scratch_end;
  float* sums;  // of a region, if C cannot hold them; null if it can
  ThreadPool& pool;

  float* ThreadScratch(size_t thread) const { return scratch + thread * blocks.floats_per_thread; }
};

// The addresses of the packed depth blocks [first, last) of the columns.
struct SharedPanels {
  SharedPanels(const GemmRun& run, IndexRange columns, size_t first, size_t last)
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

// A rectangle of C.
struct Region {
  IndexRange rows;
  IndexRange columns;
};

// Where a row of C is summed, from a column on: in C itself or in scratch.
float* SumRow(const GemmRun& run, const Region& region, size_t row, size_t column) {
  if (run.sums == nullptr) {
    return (run.problem.c + (row * run.problem.shape.columns + column)).floats();
  }
  return run.sums + (row - region.rows.begin) * region.columns.size() + column -
         region.columns.begin;
}

// Packs the rows of A for the depth block and multiplies.
void MultiplyRows(const GemmRun& run, IndexRange rows, const PackedColumns& b, float* a_panel,
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

// Complete sums of a region: adds the bias, and rounds to the type of C.
void FinishRegion(const GemmRun& run, const Region& region) {
  const GemmProblem& problem = run.problem;
  const bool biased = problem.bias.data != nullptr;
  if (run.sums == nullptr && !biased) return;
  run.pool.Run(region.rows.size(), [&](size_t index, size_t /*thread*/) {
    alignas(64) float copy[kNumbersPerPiece];
    const size_t row = region.rows.begin + index;
    for (size_t begin = region.columns.begin; begin < region.columns.end;
         begin += kNumbersPerPiece) {
      const size_t count = std::min(kNumbersPerPiece, region.columns.end - begin);
      float* sums = SumRow(run, region, row, begin);
      if (biased) {
        const float* bias = ReadNumbers(problem.bias + begin, count, copy);
        for (size_t j = 0; j < count; ++j) sums[j] += bias[j];
      }
      WriteNumbers(sums, count, problem.c + (row * problem.shape.columns + begin));
    }
  });
}

// Shared columns: packs depth blocks [first, last) of the columns, on all threads.
void PackShared(const GemmRun& run, IndexRange columns, size_t first, size_t last) {
  const size_t strips = CeilDivide(columns.size(), run.tile.columns);
  const SharedPanels panels(run, columns, first, last);
  run.pool.Run(strips * (last - first), [&](size_t chunk, size_t /*thread*/) {
    const IndexRange depth = run.cut.Block(0, first + chunk / strips);
    PackColumnStrip(run.problem.b, run.tile, columns, chunk % strips, depth, depth,
                    panels.Block(depth));
  });
}

void MultiplyShared(const GemmRun& run, const Region& region, size_t first, size_t last) {
  const EqualPieces strips = CutEqually(region.rows.size(), run.tile.rows);
  // About 8 strips per chunk if there are many, one if there are few.
  const EqualPieces chunks = CutEqually(strips.count, std::clamp<size_t>(strips.count / 32, 1, 8));
  const SharedPanels panels(run, region.columns, first, last);
  run.pool.Run(chunks.count, [&](size_t chunk, size_t thread) {
    const IndexRange range = chunks.Piece(chunk);
    for (size_t strip = range.begin; strip < range.end; ++strip) {
      const IndexRange within = strips.Piece(strip);
      const IndexRange rows{region.rows.begin + within.begin, region.rows.begin + within.end};
      StripAddresses c_rows;
      for (size_t r = 0; r < rows.size(); ++r) {
        c_rows[r] = SumRow(run, region, rows.begin + r, region.columns.begin);
      }
      for (size_t block = first; block < last; ++block) {
        const IndexRange depth = run.cut.Block(0, block);
        MultiplyRows(run, rows, {panels.Block(depth), region.columns.size(), depth},
                     run.ThreadScratch(thread), c_rows.data(), block != 0 || run.problem.adds);
      }
    }
  });
}

// Calls visit(region) for the regions of C, column by column.
template <class Visit>
void ForEachRegion(const GemmRun& run, Visit visit) {
  const GemmShape& shape = run.problem.shape;
  const GemmBlocks& blocks = run.blocks;
  for (size_t column = 0; column < shape.columns; column += blocks.region_columns) {
    for (size_t row = 0; row < shape.rows; row += blocks.region_rows) {
      visit(Region{{row, std::min(shape.rows, row + blocks.region_rows)},
                   {column, std::min(shape.columns, column + blocks.region_columns)}});
    }
  }
}

void RunSharedColumns(const GemmRun& run) {
  const size_t num_blocks = run.cut.NumBlocks(0);
  ForEachRegion(run, [&](const Region& region) {
    for (size_t first = 0; first < num_blocks; first += run.blocks.packed_depth_blocks) {
      const size_t last = std::min(num_blocks, first + run.blocks.packed_depth_blocks);
      // If all of the depth is packed at once, it is for all regions of the same columns.
      const bool packed = last - first == num_blocks && region.rows.begin > 0;
      if (!packed) PackShared(run, region.columns, first, last);
      MultiplyShared(run, region, first, last);
    }
    FinishRegion(run, region);
  });
}

// Split depth: sums of a part for a row of the region. If C can hold sums, those of the first part
// are made there.
float* PartialRow(const GemmRun& run, const Region& region, size_t part, size_t row) {
  const size_t in_c = run.problem.shape.short_c ? 0 : 1;
  if (part < in_c) return SumRow(run, region, region.rows.begin + row, region.columns.begin);
  const size_t all_rows = (run.cut.parts.count - in_c) * region.rows.size();
  const size_t index = (part - in_c) * region.rows.size() + row;
  return run.scratch_end - (all_rows - index) * region.columns.size();
}

void SumPart(const GemmRun& run, const Region& region, IndexRange columns, size_t part,
             float* thread_scratch) {
  float* a_panel = thread_scratch;
  float* b_packed = thread_scratch + kMaxTileRows * kPanelDepth;
  const EqualPieces strips = CutEqually(region.rows.size(), run.tile.rows);
  const bool adds = run.problem.adds && part == 0;  // the part that is summed in C
  for (size_t block = 0; block < run.cut.NumBlocks(part); ++block) {
    const IndexRange depth = run.cut.Block(part, block);
    for (size_t strip = 0; strip < CeilDivide(columns.size(), run.tile.columns); ++strip) {
      PackColumnStrip(run.problem.b, run.tile, columns, strip, depth, depth, b_packed);
    }
    for (size_t strip = 0; strip < strips.count; ++strip) {
      const IndexRange within = strips.Piece(strip);
      const IndexRange rows{region.rows.begin + within.begin, region.rows.begin + within.end};
      StripAddresses c_rows;
      for (size_t r = 0; r < rows.size(); ++r) {
        c_rows[r] =
            PartialRow(run, region, part, within.begin + r) + columns.begin - region.columns.begin;
      }
      MultiplyRows(run, rows, {b_packed, columns.size(), depth}, a_panel, c_rows.data(),
                   block != 0 || adds);
    }
  }
}

void AddParts(const GemmRun& run, const Region& region) {
  run.pool.Run(region.rows.size(), [&](size_t row, size_t /*thread*/) {
    float* sums = PartialRow(run, region, 0, row);
    for (size_t part = 1; part < run.cut.parts.count; ++part) {
      const float* partial = PartialRow(run, region, part, row);
      for (size_t j = 0; j < region.columns.size(); ++j) sums[j] += partial[j];
    }
  });
}

void RunSplitDepth(const GemmRun& run) {
  const GemmBlocks& blocks = run.blocks;
  ForEachRegion(run, [&](const Region& region) {
    const size_t tiles = CeilDivide(region.columns.size(), blocks.tile_columns);
    run.pool.Run(tiles * run.cut.parts.count, [&](size_t chunk, size_t thread) {
      const size_t begin = region.columns.begin + (chunk % tiles) * blocks.tile_columns;
      const size_t end = std::min(region.columns.end, begin + blocks.tile_columns);
      SumPart(run, region, {begin, end}, chunk / tiles, run.ThreadScratch(thread));
    });
    AddParts(run, region);
    GemmRun finished = run;
    if (run.problem.shape.short_c) finished.sums = PartialRow(run, region, 0, 0);
    FinishRegion(finished, region);
  });
}

// C for an empty depth.
void FillZero(const GemmRun& run) {
  if (run.problem.adds) return;
  const size_t columns = run.problem.shape.columns;
  run.pool.Run(run.problem.shape.rows, [&](size_t row, size_t /*thread*/) {
    alignas(64) float copy[kNumbersPerPiece];
    for (size_t begin = 0; begin < columns; begin += kNumbersPerPiece) {
      const size_t count = std::min(kNumbersPerPiece, columns - begin);
      const Numbers to = run.problem.c + (row * columns + begin);
      float* room = RoomForNumbers(to, copy);
      std::fill_n(room, count, 0.0F);
      if (run.problem.bias.data != nullptr) DecodeNumbers(run.problem.bias + begin, count, room);
      WriteNumbers(room, count, to);
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
  THIMBLE_CHECK(shape.short_c == IsShortNumber(problem.c.type), "the shape has another type of C");
  THIMBLE_CHECK(!problem.adds || (!shape.short_c && problem.bias.data == nullptr),
                "only plain sums in f32 can be added to");
  if (shape.rows == 0 || shape.columns == 0) return;
  const auto threads = static_cast<size_t>(pool.num_threads());
  GemmRun run{problem,
              shape.depth == 0 ? DepthCut{} : CutDepth(shape),
              shape.depth == 0 ? GemmBlocks{} : ChooseBlocks(shape, threads, scratch.size()),
              ActiveMicroTile(),
              reinterpret_cast<float*>(scratch.data()),
              reinterpret_cast<float*>(scratch.data() + scratch.size()),
              nullptr,
              pool};
  if (shape.depth == 0) return FillZero(run);
  THIMBLE_CHECK(run.blocks.ScratchBytes(threads) <= scratch.size(),
                "got {} bytes of scratch, expected at least {}", scratch.size(),
                run.blocks.ScratchBytes(threads));
  if (run.blocks.sum_floats > 0) run.sums = run.ThreadScratch(threads);
  run.cut.parts.count == 1 ? RunSharedColumns(run) : RunSplitDepth(run);
}

}  // namespace thimble
