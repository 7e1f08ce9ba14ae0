// LineTiles: the products of a LineConvolution in tiles (gemm/tiles.h), two pieces of output lines
// at a time, so that each tile of weights is used twice.
#pragma once

#include <array>
#include <cstddef>

#include "thimble/device/cpu/gemm/micro_kernel.h"
#include "thimble/device/cpu/gemm/tiles.h"
#include "thimble/ops/conv2d/output_tile.h"

namespace thimble {

class LineTiles {
 public:
  // `strip`: the common part of the products of all lines with one column strip, whose packed rows
  // are `width` floats wide.
  LineTiles(const TileShape& shape, const StripProduct& strip, size_t width);

  // Multiplies the windows of a line of `pixels` >= shape.rows pixels, perhaps not before the next
  // call of Multiply or Finish.
  void Multiply(const StripProduct& product, const float* windows, size_t pixels,
                const OutputLine& line);
  void Finish();

 private:
  // `rows` pixels of a line. The last piece of a line begins early enough to be as large as the
  // others; the first `skipped` pixels then belong to the previous piece too.
  struct Piece {
    OutputLine line;
    const float* windows = nullptr;
    const float* weights = nullptr;
    size_t segments = 0;
    size_t pixel = 0;
    size_t skipped = 0;
  };
  void MultiplyPieces();
  void LoadSums(const Piece& piece, float* sums) const;
  void StoreSums(const Piece& piece, float* sums) const;

  TileShape shape_;
  StripProduct strip_;
  size_t width_;
  size_t count_ = 0;
  std::array<Piece, 2> pieces_;
  alignas(64) float sums_[2 * kTileSide * kMaxTileColumns];
};

}  // namespace thimble
