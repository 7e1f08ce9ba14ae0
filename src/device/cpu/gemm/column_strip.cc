#include "thimble/device/cpu/gemm/column_strip.h"

#include <algorithm>

namespace thimble {

void PackColumnStrip(const Packer& b, const MicroTile& tile, IndexRange columns, size_t strip,
                     IndexRange depth, IndexRange piece, float* packed) {
  const size_t begin = strip * tile.columns;
  const size_t used = std::min(tile.columns, columns.size() - begin);
  const size_t width = used <= tile.lanes ? tile.lanes : tile.columns;
  float* panel = packed + begin * depth.size() + (piece.begin - depth.begin) * width;
  // Lanes past the last column are computed and discarded; zeros avoid slow denormals.
  if (used < width) std::fill_n(panel, piece.size() * width, 0.0F);
  b({piece.begin, piece.size(), columns.begin + begin, used}, panel, width);
}

}  // namespace thimble
