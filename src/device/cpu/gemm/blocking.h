// How a matrix product is divided. There are two kinds of division, separate because of what they
// may depend on:
//   DepthCut    decides the order of additions, hence the bits: depends on the shape alone.
//   GemmBlocks  decides what is packed when: depends on threads and scratch, changes no bit.
#pragma once

#include <algorithm>
#include <cstddef>

namespace thimble {

// C (rows, columns) = A (rows, depth) * B (depth, columns).
struct GemmShape {
  size_t rows = 0;
  size_t columns = 0;
  size_t depth = 0;
  bool short_c = false;  // C stores 16 bits: sums are kept in scratch until they are complete
  // The depth is one part: the order of additions then depends on the depth alone, and an element
  // of C has the same bits in a product with other rows and columns.
  bool one_part = false;
};

// The half-open range [begin, end).
struct IndexRange {
  size_t begin = 0;
  size_t end = 0;
  size_t size() const { return end - begin; }
};

constexpr size_t CeilDivide(size_t total, size_t size) { return (total + size - 1) / size; }

// [0, total) in pieces of one size; the last may be smaller.
struct EqualPieces {
  size_t total = 0;
  size_t size = 1;
  size_t count = 0;
  IndexRange Piece(size_t index) const {
    return {index * size, std::min(total, (index + 1) * size)};
  }
};

// As few pieces of at most `max_size` as possible, as equal as possible.
constexpr EqualPieces CutEqually(size_t total, size_t max_size) {
  if (total == 0) return {};
  const size_t size = CeilDivide(total, CeilDivide(total, max_size));
  return {total, size, CeilDivide(total, size)};
}

// The depth is divided into parts, each summed separately and added to C in order; a part into
// blocks of at most kPanelDepth, each a chain of multiply-adds from zero, also added in order.
struct DepthCut {
  EqualPieces parts;
  size_t block_size = 1;
  size_t NumBlocks(size_t part) const { return CeilDivide(parts.Piece(part).size(), block_size); }
  IndexRange Block(size_t part, size_t block) const {
    const IndexRange whole = parts.Piece(part);
    const size_t begin = whole.begin + block * block_size;
    return {begin, std::min(whole.end, begin + block_size)};
  }
};
// Requires depth >= 1.
DepthCut CutDepth(const GemmShape& shape);

struct GemmBlocks {
  // The rectangle of C processed at a time, and the number of depth blocks of B packed for it at a
  // time (shared columns; with split depth always one, per thread).
  size_t region_rows = 0;
  size_t region_columns = 0;
  size_t packed_depth_blocks = 0;
  // Columns of a region that one thread processes (split depth only).
  size_t tile_columns = 0;

  // Scratch in floats: first the private part of each thread, then the sums of a region that cannot
  // be made in C (shared columns), then the shared part.
  size_t shared_floats = 0;
  size_t sum_floats = 0;
  size_t floats_per_thread = 0;
  size_t ScratchBytes(size_t threads) const {
    // Whole cache lines, so that the shared part, at the end of the scratch, stays aligned.
    const size_t floats = shared_floats + sum_floats + threads * floats_per_thread;
    return CeilDivide(floats * sizeof(float), 64) * 64;
  }
};

// The largest blocks whose scratch is at most `scratch_bytes`, or the smallest possible ones, which
// need less than 64 KiB per thread. Called again with the bytes these blocks need, it returns the
// same blocks.
GemmBlocks ChooseBlocks(const GemmShape& shape, size_t threads, size_t scratch_bytes);

}  // namespace thimble
