// How conv2d_grad_weight is divided. As for the matrix product, there are two kinds of division:
//   GradWeightCut     decides the order of additions, hence the bits: depends on the shape alone.
//   GradWeightBlocks  decides what is summed when: depends on threads and scratch, changes no bit.
#pragma once

#include <cstddef>

#include "thimble/device/cpu/gemm/blocking.h"
#include "thimble/device/cpu/gemm/outer_product.h"
#include "thimble/ops/conv2d/geometry.h"

namespace thimble {

// Maximum lines of a block.
inline constexpr size_t kMaxBlockLines = 32;
// Floats before a finished range, for numbers that its user keeps: up to a block of q8, whole cache
// lines.
inline constexpr size_t kRangeMargin = 256;

// Which tensors store numbers in 16 bits. Their lines are converted block by block, or, if both
// store bf16 and the target multiplies pairs (gemm/pairs.h), lines of an image are paired.
struct GradWeightStorage {
  bool short_x = false;
  bool short_dy = false;
  bool pairs = false;
  bool tiles = false;  // paired and multiplied in tiles (gemm/tiles.h). Requires CanBeTiled.
};

// Whether the weight gradient can be computed in tiles, on machines that have them: of output
// channels (rows), elements of a tap row (columns) and output pixels of a line (depth).
bool CanBeTiled(const Conv2dGeometry& g);
// The most output channels of such a convolution.
inline constexpr size_t kMaxTiledChannels = 2048;

struct GradWeightCut {
  // The batch as output lines: parts are summed separately and added in order; a part is divided
  // into blocks of lines, each a chain from zero, also added in order.
  EqualPieces parts;
  size_t block_lines = 1;

  // A tap row of dw as groups of elements that are read together, for the same pixels: single taps,
  // or all taps of the row if there are few channels or tiles. In the latter case image lines must
  // be packed with their padding; otherwise taps skip the pixels for which they are outside.
  bool pads_lines = false;
  size_t groups = 1;
  EqualPieces rows;  // of a group: the elements of one unit

  // A unit is the work of one outer-product call: rows of a group for some output channels. Its
  // sums are (rows, output channels), in tiles (output channels, rows).
  size_t unit_columns = 0;  // the last ones may have fewer
  size_t column_blocks = 0;
  size_t units_per_column_block = 0;
  size_t num_units() const { return column_blocks * units_per_column_block; }
  size_t unit_floats() const { return rows.size * unit_columns; }
};
// Requires that nothing is empty. Units have at most `max_columns` output channels, a multiple of
// kMaxLanes, which changes no bit.
GradWeightCut CutGradWeight(const Conv2dGeometry& g, const GradWeightStorage& storage,
                            size_t max_columns = kMaxOuterColumns);

// The number of last lines of dy that are copied, because reading whole vectors from them would go
// past the end of memory. 0 if the channels are whole vectors.
size_t NumCopiedLines(const Conv2dGeometry& g);

struct GradWeightBlocks {
  // Units whose sums are in scratch at a time: those of all parts together or, if there is only one
  // part, those of each thread.
  size_t region_units = 1;
  size_t chunk_units = 1;  // summed by one thread at a time, for one part
  // Output channels that are finished in scratch before they are used: whole units, or the part of
  // one that CutGradWeight is to have. 0: sums are written where they belong at once.
  size_t range_columns = 0;

  // Scratch in floats: first that of each thread, then a range, then the sums.
  size_t line_floats = 0;    // a packed line of x; 0: lines are read in place
  size_t band_floats = 0;    // packed lines
  size_t copied_floats = 0;  // lines of dy
  size_t range_floats = 0;   // with kRangeMargin floats before it
  size_t sum_floats = 0;
  size_t floats_per_thread() const { return band_floats + copied_floats; }
  size_t ScratchBytes(size_t threads) const {
    return (sum_floats + range_floats + threads * floats_per_thread()) * sizeof(float);
  }
};

// The largest blocks whose scratch is at most `scratch_bytes`, or the smallest possible ones.
// Called again with the bytes these blocks need, it returns the same blocks.
GradWeightBlocks ChooseGradWeightBlocks(const Conv2dGeometry& g, const GradWeightStorage& storage,
                                        size_t threads, size_t scratch_bytes);
// The same for sums that are finished range by range.
GradWeightBlocks ChooseGradWeightRanges(const Conv2dGeometry& g, const GradWeightStorage& storage,
                                        size_t threads, size_t scratch_bytes);

// The slot of the band for the image line that a tap row reads for an output line. Lines of an
// image share those that the previous one has packed. Output lines are numbered over the batch,
// `begin` is the first of the block.
size_t BandSlot(const Conv2dGeometry& g, size_t begin, size_t line, size_t tap_row);

}  // namespace thimble
