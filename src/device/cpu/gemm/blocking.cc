#include "thimble/device/cpu/gemm/blocking.h"

#include <algorithm>
#include <bit>

#include "thimble/base/byte_size.h"
#include "thimble/device/cpu/gemm/micro_kernel.h"

namespace thimble {
namespace {

// Eight parts keep eight threads busy; more would only add memory for partial sums.
constexpr size_t kMaxDepthParts = 8;
// Partial sums of all parts together stay near 1 MiB, about what a second-level cache holds.
constexpr size_t kMaxPartialFloats = size_t{1} << 18;
// Products with more rows have enough strips for all threads and need no parts.
constexpr size_t kMaxSplitRows = 256;
// Columns of a tile. With fewer, the transposed packing of A, repeated for each tile, costs
// noticeable time; more would only use scratch.
constexpr size_t kMinSplitColumns = 128;
constexpr size_t kMaxSplitColumns = 320;

// Packed columns stay in the second-level cache, because every strip of A reads them all: as many
// depth blocks as need at most half a megabyte, or one.
constexpr size_t kMaxPackedFloats = size_t{1} << 17;

// Rows whose sums are kept in scratch, if C cannot hold them: enough strips for 16 threads.
constexpr size_t kMaxSumRows = 32 * kMaxTileRows;

constexpr size_t kStripFloats = kMaxTileRows * kPanelDepth;

size_t RoundColumns(size_t columns) { return RoundUp(columns, kMaxTileColumns); }

// Half of the value, rounded to a multiple.
size_t Halve(size_t value, size_t multiple) {
  return std::max(multiple, RoundUp(CeilDivide(value, 2), multiple));
}

void SizeShared(const EqualPieces& depth, bool short_c, GemmBlocks& blocks) {
  if (short_c) blocks.sum_floats = RoundUp(blocks.region_rows * blocks.region_columns, 16);
  blocks.shared_floats = std::min(depth.total, blocks.packed_depth_blocks * depth.size) *
                         RoundColumns(blocks.region_columns);
  blocks.floats_per_thread = kStripFloats;
}

GemmBlocks ChooseSharedColumns(const GemmShape& shape, size_t threads, size_t scratch_bytes) {
  GemmBlocks blocks;
  blocks.region_rows = shape.short_c ? std::min(shape.rows, kMaxSumRows) : shape.rows;
  blocks.region_columns = shape.columns;
  const EqualPieces depth = CutEqually(shape.depth, kPanelDepth);
  blocks.packed_depth_blocks = std::clamp<size_t>(
      kMaxPackedFloats / (depth.size * RoundColumns(shape.columns)), 1, depth.count);
  for (;;) {
    SizeShared(depth, shape.short_c, blocks);
    if (blocks.ScratchBytes(threads) <= scratch_bytes) return blocks;
    if (shape.short_c && blocks.region_rows > kMaxTileRows &&
        blocks.sum_floats > blocks.shared_floats) {
      blocks.region_rows = Halve(blocks.region_rows, kMaxTileRows);
    } else if (blocks.packed_depth_blocks > 1) {
      blocks.packed_depth_blocks = CeilDivide(blocks.packed_depth_blocks, 2);
    } else if (blocks.region_columns > kMaxTileColumns) {
      blocks.region_columns = Halve(blocks.region_columns, kMaxTileColumns);
    } else {
      return blocks;
    }
  }
}

void SizeSplit(size_t parts, bool short_c, GemmBlocks& blocks) {
  // The first part is summed in C itself if possible. Rounded to whole cache lines.
  const size_t kept_parts = short_c ? parts : parts - 1;
  blocks.shared_floats = RoundUp(kept_parts * blocks.region_rows * blocks.region_columns, 16);
  blocks.floats_per_thread = kStripFloats + kPanelDepth * RoundColumns(blocks.tile_columns);
}

GemmBlocks ChooseSplitDepth(const GemmShape& shape, size_t parts, size_t threads,
                            size_t scratch_bytes) {
  GemmBlocks blocks;
  blocks.region_rows = shape.rows;
  blocks.region_columns = shape.columns;
  blocks.packed_depth_blocks = 1;
  // At least two per thread, for load balance.
  const size_t tiles =
      std::max(CeilDivide(2 * threads, parts), CeilDivide(shape.columns, kMaxSplitColumns));
  blocks.tile_columns = std::min(
      shape.columns, std::max(kMinSplitColumns, RoundColumns(CeilDivide(shape.columns, tiles))));
  for (;;) {
    SizeSplit(parts, shape.short_c, blocks);
    if (blocks.ScratchBytes(threads) <= scratch_bytes) return blocks;
    const bool tiles_weigh_more = threads * blocks.floats_per_thread > blocks.shared_floats;
    if (blocks.tile_columns > kMaxTileColumns &&
        (tiles_weigh_more || blocks.region_columns <= blocks.tile_columns)) {
      blocks.tile_columns = Halve(blocks.tile_columns, kMaxTileColumns);
    } else if (blocks.region_columns > blocks.tile_columns) {
      blocks.region_columns =
          std::max(blocks.tile_columns, Halve(blocks.region_columns, kMaxTileColumns));
    } else if (blocks.region_rows > kMaxTileRows) {
      blocks.region_rows = Halve(blocks.region_rows, kMaxTileRows);
    } else {
      return blocks;
    }
  }
}

}  // namespace

DepthCut CutDepth(const GemmShape& shape) {
  const size_t elements = std::max<size_t>(1, shape.rows * shape.columns);
  const size_t by_size = (kMaxPartialFloats + elements / 2) / elements;
  const size_t by_depth = shape.depth / kPanelDepth;
  const size_t at_most = shape.one_part || shape.rows > kMaxSplitRows ? 1 : kMaxDepthParts;
  const size_t parts = std::bit_floor(std::max<size_t>(1, std::min({by_size, by_depth, at_most})));
  const size_t part_size = CeilDivide(shape.depth, parts);
  return {{shape.depth, part_size, parts}, CutEqually(part_size, kPanelDepth).size};
}

GemmBlocks ChooseBlocks(const GemmShape& shape, size_t threads, size_t scratch_bytes) {
  const size_t parts = CutDepth(shape).parts.count;
  return parts == 1 ? ChooseSharedColumns(shape, threads, scratch_bytes)
                    : ChooseSplitDepth(shape, parts, threads, scratch_bytes);
}

}  // namespace thimble
