// Products in tiles: registers of 16 x 16 floats, which some processors (with AMX) add the product
// of two smaller matrices of bf16 numbers to in one instruction. Operands are pairs of numbers
// (pairs.h) in the layout of the other products, so nothing is packed differently.
//
// One instruction sums each element's first numbers of all pairs from zero, their second numbers
// likewise, and adds both sums to the tile. So the bits of a product depend on how its depth is
// divided into tiles: always into equal ones, TileDepth(depth) pairs deep.
#pragma once

#include <cstddef>
#include <span>

namespace thimble {

// The most rows, columns and pairs along the depth of a tile.
inline constexpr size_t kTileSide = 16;
// The most segments of a product.
inline constexpr size_t kMaxTileSegments = 32;

// The largest divisor of `depth` up to kTileSide; 0 if tiles would be so shallow that other code is
// better.
size_t TileDepth(size_t depth);

// A product of two halves of rows, which may be in different places.
struct TileSegment {
  const float* a[2] = {};    // (rows, depth) each; the second is used if there are two halves
  const float* b = nullptr;  // (depth, columns)
};

struct TileShape {
  size_t rows = 0;   // of a half: at most kTileSide
  size_t depth = 0;  // TileDepth of the product's depth
};

// sums (halves * kTileSide, column_tiles * kTileSide) = or += the sum of the products of all
// segments, in order. Only the first shape.rows rows of each half are written.
struct TileProduct {
  TileShape shape;  // that of the TileRegion
  std::span<const TileSegment> segments;
  size_t depth = 0;     // of a segment, in pairs
  size_t a_stride = 0;  // floats from one row to the next
  size_t b_stride = 0;
  size_t halves = 1;        // 1 or 2
  size_t column_tiles = 1;  // 1 or 2
  float* sums = nullptr;
  size_t sums_stride = 0;
  bool adds = false;  // to the previous numbers
};

// The calling thread can multiply tiles of this shape as long as the region exists. Requires
// MultipliesTiles().
class TileRegion {
 public:
  explicit TileRegion(const TileShape& shape);
  ~TileRegion();
  TileRegion(const TileRegion&) = delete;
  TileRegion& operator=(const TileRegion&) = delete;
};

void MultiplyTiles(const TileProduct& product);

// The code that does it.
struct TileKernels {
  void (*configure)(const TileShape& shape);
  void (*release)();
  void (*multiply)(const TileProduct& product);
};

// Whether tiles can be used. The first call asks the system for permission.
bool HasTileKernels();

// For tests on machines without tiles: uses these kernels instead; null: the machine's again.
void ReplaceTileKernels(const TileKernels* kernels);

}  // namespace thimble
