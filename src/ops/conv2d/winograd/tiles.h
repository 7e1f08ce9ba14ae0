// The parts of a Winograd convolution that run on one thread, on a group of tiles. Compiled per
// SIMD target.
//
// A tile is 4 x 4 outputs of a 3 x 3 convolution with stride 1. It reads 6 x 6 inputs and takes 36
// products per pair of channels (144 without the transform), one for each of 36 points:
//   values (36, tiles, C)      of the inputs
//   weights (36, C, K)         of the filters
//   products (36, tiles, K)    sums over C of values * weights, which give the outputs
// The gradient of the filters is the reverse: sums over the tiles of values * values of dy.
#pragma once

#include <cstddef>
#include <cstdint>

#include "thimble/device/cpu/gemm/blocking.h"
#include "thimble/device/cpu/numbers.h"

namespace thimble {

inline constexpr size_t kWinogradPoints = 36;
inline constexpr size_t kWinogradTaps = 9;
inline constexpr int64_t kWinogradOutputs = 4;  // along each side of a tile
inline constexpr size_t kTileOutputs = kWinogradOutputs * kWinogradOutputs;
// Maximum channels processed at a time. Fixed, because it decides the order of additions.
inline constexpr size_t kWinogradChannels = 128;

// Images (batch, height, width, channels) and the positions of tiles on them.
struct TiledImages {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  int64_t tiles_high = 0;
  int64_t tiles_wide = 0;
  // The first pixel of the first tile; pixels outside the image are zero.
  int64_t top = 0;
  int64_t left = 0;
};

// A matrix (rows, columns) for each point.
template <class T>
struct PointMatrices {
  T* data = nullptr;
  size_t point_stride = 0;  // floats from one point's matrix to the next
  size_t row_stride = 0;
};

// values = transform of the 6 x 6 inputs of each tile, for these channels (at most
// kWinogradChannels).
void TransformInputTiles(ConstNumbers images, const TiledImages& grid, IndexRange tiles,
                         IndexRange channels, const PointMatrices<float>& values);

// values = transform of the 4 x 4 output gradients of each tile; columns up to the next whole
// vector are zero.
void TransformOutputGradientTiles(ConstNumbers images, const TiledImages& grid, IndexRange tiles,
                                  IndexRange channels, const PointMatrices<float>& values);

// Writes the outputs of each tile to the images, rounded once: the transform of the products, plus
// sums over earlier input channels, plus what the op adds.
struct TileOutputs {
  PointMatrices<const float> products;
  Numbers images;
  TiledImages grid;
  IndexRange tiles;
  IndexRange channels;
  bool add = false;             // to the images, which store floats
  const float* sums = nullptr;  // to be added, (tiles, 4, 4, channels); or null
  ConstNumbers added = {};      // to be added last, an array like the images; or null
};
void TransformOutputTiles(const TileOutputs& outputs);

// Transforms the filters of `rows` input channels for one strip of output channels into their place
// in the packed weights. taps: (9, rows, strip width), point matrices (rows, strip width).
void TransformWeightStrip(const float* taps, size_t tap_stride, size_t rows,
                          const PointMatrices<float>& weights);

// products = values * weights for all points. Weights of a point are consecutive strips of columns,
// each (depth, strip width).
struct TileProducts {
  PointMatrices<const float> values;  // (tiles, depth)
  PointMatrices<const float> weights;
  PointMatrices<float> products;  // (tiles, strips * strip width)
  size_t tiles = 0;
  size_t depth = 0;
  size_t strips = 0;
};
void MultiplyTiles(const TileProducts& product);

// sums (rows, columns) += values (tiles, rows) transposed * gradients (tiles, columns), for all
// points. Columns: whole strips.
struct TileSums {
  PointMatrices<const float> values;
  PointMatrices<const float> gradients;
  PointMatrices<float> sums;
  size_t tiles = 0;
  size_t rows = 0;
  size_t strips = 0;
};
void AddTileSums(const TileSums& sums);

// Computes the gradients of the nine taps, which replace the sums of the first nine points.
void TransformWeightGradients(const PointMatrices<float>& sums, size_t rows, size_t columns);

}  // namespace thimble
