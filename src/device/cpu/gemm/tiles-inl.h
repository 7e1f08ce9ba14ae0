// The product of tiles.h as a template, so that tests can run it without the processor's tiles.
#pragma once

#include <cstddef>

#include "thimble/device/cpu/gemm/tiles.h"

namespace thimble {

// Which of the eight tiles hold what. Sums: half, then column.
inline constexpr int kSumTiles[2][2] = {{0, 1}, {2, 3}};
inline constexpr int kATiles[2] = {4, 5};
inline constexpr int kBTiles[2] = {6, 7};
inline constexpr int kNumTiles = 8;

// Unit has static functions: Load<tile>(address, stride) and Store<tile>(address, stride) with
// strides in floats, Clear<tile>() and AddProduct<sum, a, b>().
template <class Unit, size_t kHalves, size_t kColumns>
void AddTileSegment(const TileProduct& p, const TileSegment& segment) {
  const size_t a_stride = p.a_stride;
  const size_t b_stride = p.b_stride;
  const size_t step = p.shape.depth;
  const float* first = segment.a[0];
  const float* second = segment.a[1];
  const float* b = segment.b;
  for (size_t left = p.depth; left > 0; left -= step, b += step * b_stride) {
    Unit::template Load<kBTiles[0]>(b, b_stride);
    Unit::template Load<kATiles[0]>(first, a_stride);
    Unit::template AddProduct<kSumTiles[0][0], kATiles[0], kBTiles[0]>();
    if constexpr (kColumns == 2) {
      Unit::template Load<kBTiles[1]>(b + kTileSide, b_stride);
      Unit::template AddProduct<kSumTiles[0][1], kATiles[0], kBTiles[1]>();
    }
    first += step;
    if constexpr (kHalves == 2) {
      Unit::template Load<kATiles[1]>(second, a_stride);
      Unit::template AddProduct<kSumTiles[1][0], kATiles[1], kBTiles[0]>();
      if constexpr (kColumns == 2) {
        Unit::template AddProduct<kSumTiles[1][1], kATiles[1], kBTiles[1]>();
      }
      second += step;
    }
  }
}

// Calls visit with each tile of sums and its address.
template <size_t kHalves, size_t kColumns, class Visit>
void ForEachSumTile(const TileProduct& p, const Visit& visit) {
  visit.template operator()<kSumTiles[0][0]>(p.sums);
  if constexpr (kColumns == 2) visit.template operator()<kSumTiles[0][1]>(p.sums + kTileSide);
  if constexpr (kHalves == 2) {
    float* second = p.sums + kTileSide * p.sums_stride;
    visit.template operator()<kSumTiles[1][0]>(second);
    if constexpr (kColumns == 2) visit.template operator()<kSumTiles[1][1]>(second + kTileSide);
  }
}

template <class Unit, size_t kHalves, size_t kColumns>
void MultiplySomeTiles(const TileProduct& p) {
  const size_t stride = p.sums_stride;
  const bool adds = p.adds;
  ForEachSumTile<kHalves, kColumns>(p, [=]<int kTile>(float* sums) {
    if (adds) return Unit::template Load<kTile>(sums, stride);
    Unit::template Clear<kTile>();
  });
  for (const TileSegment& segment : p.segments) {
    AddTileSegment<Unit, kHalves, kColumns>(p, segment);
  }
  ForEachSumTile<kHalves, kColumns>(
      p, [=]<int kTile>(float* sums) { Unit::template Store<kTile>(sums, stride); });
}

template <class Unit>
void MultiplyTilesWith(const TileProduct& p) {
  if (p.halves == 2 && p.column_tiles == 2) return MultiplySomeTiles<Unit, 2, 2>(p);
  if (p.halves == 2) return MultiplySomeTiles<Unit, 2, 1>(p);
  if (p.column_tiles == 2) return MultiplySomeTiles<Unit, 1, 2>(p);
  MultiplySomeTiles<Unit, 1, 1>(p);
}

}  // namespace thimble
