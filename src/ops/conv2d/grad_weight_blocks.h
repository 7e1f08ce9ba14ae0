// How conv2d_grad_weight is cut. As for the matrix product, two kinds of cuts:
//   GradWeightCut     decides the order of additions, hence the bits: depends on the shape alone.
//   GradWeightBlocks  decides what is summed when: depends on threads and scratch, changes no bit.
#pragma once

#include <cstddef>

#include "thimble/device/cpu/gemm/blocking.h"
#include "thimble/ops/conv2d/geometry.h"

namespace thimble {

// Lines of a block, at most.
inline constexpr size_t kMaxBlockLines = 32;

struct GradWeightCut {
  // The batch as output lines: parts are summed on their own and added in order; a part is cut into
  // blocks of lines, each a chain from zero, added in order too.
  EqualPieces parts;
  size_t block_lines = 1;

  // A tap row of dw as groups of elements that are read together, for the same pixels: single taps,
  // or all taps of the row where there are few channels. Then image lines must be packed with their
  // padding; otherwise taps just skip the pixels where they lie outside.
  bool pads_lines = false;
  size_t groups = 1;
  EqualPieces rows;  // of a group: the elements of one unit

  // A unit is what one call of the outer product sums: rows of a group for some output channels.
  size_t unit_columns = 0;  // the last ones may have fewer
  size_t column_blocks = 0;
  size_t units_per_column_block = 0;
  size_t num_units() const { return column_blocks * units_per_column_block; }
  size_t unit_floats() const { return rows.size * unit_columns; }
};
// Requires that nothing is empty.
GradWeightCut CutGradWeight(const Conv2dGeometry& g);

// The lines at the end of dy, behind which a vector would reach past the end of memory where the
// channels are not whole vectors. They are copied.
size_t NumCopiedLines(const Conv2dGeometry& g);

struct GradWeightBlocks {
  // Units whose sums are in scratch at a time: those of all parts together, or, where there is only
  // one part, those of each thread.
  size_t region_units = 1;
  size_t chunk_units = 1;  // summed by one thread at a time, for one part

  // Scratch of each thread, then the sums. In floats.
  size_t line_floats = 0;  // a packed line of x; 0: lines are read where they lie
  size_t band_floats = 0;
  size_t copied_floats = 0;
  size_t sum_floats = 0;
  size_t floats_per_thread() const { return band_floats + copied_floats; }
  size_t ScratchBytes(size_t threads) const {
    return (sum_floats + threads * floats_per_thread()) * sizeof(float);
  }
};

// The largest blocks whose scratch is at most `scratch_bytes`, or the smallest possible ones. Asked
// again with the bytes these blocks need, gives the same ones.
GradWeightBlocks ChooseGradWeightBlocks(const Conv2dGeometry& g, size_t threads,
                                        size_t scratch_bytes);

}  // namespace thimble
