// How a weight gradient is divided into blocks, and their pixels into tiles: the same for floats
// and for factors of 16 bits.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>

#include "thimble/ops/conv2d/cuda/image_tile.cuh"
#include "thimble/ops/conv2d/cuda/weight_gradient.h"

namespace thimble {

// Blocks that a large GPU runs at once; the split of the batch depends only on this and the shape.
inline constexpr int kTargetBlocks = 264;
inline constexpr size_t kMaxSharedBytes = size_t{160} << 10;
// Groups of channels are the second and third dimension of a grid, which have this limit.
inline constexpr int kMaxGroups = 65535;

template <Math kMath_, Channels kChannels_, int kTaps_, int kBlocksM_, int kBlocksN_>
struct Config {
  static constexpr Math kMath = kMath_;
  using Number = Factor<kMath>;
  static constexpr Channels kChannels = kChannels_;
  static constexpr int kTaps = kTaps_;               // in a row, and rows
  static constexpr int kBlocksM = kBlocksM_;         // of 16 output channels
  static constexpr int kBlocksN = kBlocksN_;         // of 8 input channels
  static constexpr int kTurns = kTaps == 1 ? 4 : 2;  // warps that share a row of taps
  static constexpr int kThreads = 32 * kTaps * kTurns;
  static constexpr int kOut = 16 * kBlocksM;
  static constexpr int kIn = 8 * kBlocksN;
  // Sums of one warp, for the exchange between those that share a row.
  static constexpr int kSums = kTaps * kBlocksM * kBlocksN * 4;
};

// How the output pixels of an image are divided into tiles.
struct Tiling {
  int rows, columns;  // output pixels of a tile; columns are 8 << column_bits
  int column_bits;
  int down, across;           // tiles of an image
  int tiles;                  // of the batch
  int splits;                 // of the tiles, into ranges whose sizes differ by at most one
  int out_groups, in_groups;  // blocks of channels
  TileArea area;              // pixels of x that a tile reaches
  Divisor columns_of_dy{1}, columns_of_x{1};

  __device__ int FirstTile(unsigned split) const {
    return static_cast<int>(static_cast<int64_t>(split) * tiles / splits);
  }
};

inline Tiling TilingOf(const WeightGradient& g, int out, int in) {
  Tiling t{};
  // Windows with larger strides reach further, so fewer of them fit.
  const int widest = g.stride == 1 ? 32 : 16;
  t.columns = std::min(widest, g.out_width > 16 ? 32 : g.out_width > 8 ? 16 : 8);
  t.column_bits = t.columns == 32 ? 2 : t.columns == 16 ? 1 : 0;
  t.rows = t.columns == widest ? 4 : 8;
  t.down = (g.out_height + t.rows - 1) / t.rows;
  t.across = (g.out_width + t.columns - 1) / t.columns;
  t.tiles = g.batch * t.down * t.across;
  t.out_groups = (g.out_channels + out - 1) / out;
  t.in_groups = (g.channels + in - 1) / in;
  t.splits = std::clamp(kTargetBlocks / (t.out_groups * t.in_groups), 1, std::max(1, t.tiles));
  t.area = {(t.rows - 1) * g.stride + g.kernel, (t.columns - 1) * g.stride + g.kernel};
  t.columns_of_dy = Divisor(t.columns);
  t.columns_of_x = Divisor(t.area.columns);
  return t;
}

template <class C>
struct WarpSums {
  float values[C::kTaps][C::kBlocksM][C::kBlocksN][4] = {};
};

// Blocks of output channels that a launch has.
inline unsigned OutGroups(const WeightGradient& g, int out) {
  return static_cast<unsigned>((g.end_out - g.first_out + out - 1) / out);
}

// Whether blocks support the kernel's size, and there are channels to distribute over them.
inline bool FitsBlocks(const WeightGradient& g) {
  return (g.kernel == 1 || g.kernel == 3) && g.elements() > 0;
}
inline bool FitsTiles(const Tiling& t) {
  return std::max(t.out_groups, t.in_groups) <= kMaxGroups && t.area.pixels() < kMaxTilePixels;
}

// Copies the dy of a tile, and behind it the x that its windows reach, of the block's channels.
template <class DyTile, class XTile, class Groups>
__device__ void CopyTile(const WeightGradient& g, const Tiling& t, int tile, const Groups& x,
                         const Groups& dy, typename Groups::Number* to) {
  const int thread = static_cast<int>(threadIdx.x);
  const auto across = static_cast<unsigned>(t.across);
  const auto down = static_cast<unsigned>(t.down);
  const unsigned tile_row = static_cast<unsigned>(tile) / across;
  const int column = static_cast<int>(static_cast<unsigned>(tile) - tile_row * across) * t.columns;
  const int image = static_cast<int>(tile_row / down);
  const int line = static_cast<int>(tile_row % down) * t.rows;
  const int64_t dy_image = static_cast<int64_t>(g.out_height) * g.out_width * g.out_channels;
  const int64_t x_image = static_cast<int64_t>(g.height) * g.width * g.channels;
  DyTile::Copy(thread, {dy.From(image * dy_image), g.out_height, g.out_width, g.out_channels},
               {line, column, 1}, {t.rows, t.columns}, t.columns_of_dy,
               g.first_out + static_cast<int>(blockIdx.y) * DyTile::kChannels, to);
  XTile::Copy(thread, {x.From(image * x_image), g.height, g.width, g.channels},
              {line * g.stride - g.padding, column * g.stride - g.padding, 1}, t.area,
              t.columns_of_x, static_cast<int>(blockIdx.z) * XTile::kChannels,
              to + t.rows * t.columns * DyTile::kPixelPitch);
}

// Calls visit.template operator()<C>() for the configuration of this gradient.
template <Math kMath, Channels kChannels, class Visit>
auto WithConfig(const WeightGradient& g, const Visit& visit) {
  const auto by_channels = [&]<int kTaps>() {
    if (g.out_channels <= 16) {
      if (g.channels <= 8) {
        return visit.template operator()<Config<kMath, kChannels, kTaps, 1, 1>>();
      }
      return visit.template operator()<Config<kMath, kChannels, kTaps, 1, 4>>();
    }
    if (g.channels <= 16) return visit.template operator()<Config<kMath, kChannels, kTaps, 2, 2>>();
    return visit.template operator()<Config<kMath, kChannels, kTaps, 2, 4>>();
  };
  return g.kernel == 1 ? by_channels.template operator()<1>()
                       : by_channels.template operator()<3>();
}

}  // namespace thimble
