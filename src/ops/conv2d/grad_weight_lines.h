// How conv2d_grad_weight reads x and dy. Lines are read in place if they store floats. With pairs,
// the lines are those of two neighbouring output lines, combined: each pair of numbers is the same
// place in both, so that every tap meets the same pairs. In tiles, dy is transposed in addition.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "thimble/ops/conv2d/grad_weight_blocks.h"
#include "thimble/ops/conv2d/line_packer.h"

namespace thimble {

// State shared by all parts of a run. The threads' lines are at the beginning of the scratch; the
// sums end where the scratch ends, so that its last word is always used.
struct GradWeightRun {
  Conv2dGeometry g;
  bool pairs;
  bool tiles;
  GradWeightCut cut;
  GradWeightBlocks blocks;
  LinePacker x;
  ConstNumbers dy;
  float* scratch;
  float* scratch_end;

  float* ThreadScratch(size_t thread) const {
    return scratch + thread * blocks.floats_per_thread();
  }
};

// The image lines of a block of output lines for one tap row; lines outside the image are skipped.
class GradWeightLines {
 public:
  // `columns`: the output channels that are read.
  GradWeightLines(const GradWeightRun& run, IndexRange columns, float* thread_scratch)
      : run_(run),
        columns_(columns),
        band_(thread_scratch),
        copied_(thread_scratch + run.blocks.band_floats) {}

  // Output lines are numbered consecutively over the batch.
  void SetBlock(IndexRange lines);
  void SetTapRow(int64_t tap_row);

  size_t count() const { return count_; }
  const float* const* x() const { return x_.data(); }
  const float* const* dy() const { return dy_.data(); }
  const IndexRange& columns() const { return columns_; }

 private:
  int64_t ImageLine(size_t line, int64_t tap_row, int64_t further = 0) const;
  float* BandLine(size_t line, int64_t tap_row) const;
  int64_t FirstPixel() const;
  int64_t NumPixels() const;
  void PackBand() const;
  template <class Visit>
  void ForEachPair(const Visit& visit) const;
  void PackPairs() const;
  void TransposePairs(const BF16* first, const BF16* second, float* to) const;
  void SetPairs(int64_t tap_row);
  size_t OutputLineFloats() const;
  void CopyOutputLines(IndexRange lines) const;
  const float* OutputLine(size_t line) const;

  const GradWeightRun& run_;
  IndexRange columns_;
  float* band_;
  float* copied_;
  IndexRange lines_;
  int64_t tap_row_ = -1;
  size_t count_ = 0;
  std::array<const float*, kMaxBlockLines> x_;
  std::array<const float*, kMaxBlockLines> dy_;
};

}  // namespace thimble
