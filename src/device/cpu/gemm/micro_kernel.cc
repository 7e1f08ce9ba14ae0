#include "thimble/device/cpu/gemm/micro_kernel.h"

#include <algorithm>
#include <array>
#include <utility>

// Highway compiles the part between BEFORE_NAMESPACE and AFTER_NAMESPACE once per SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/device/cpu/gemm/micro_kernel.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/device/cpu/gemm/pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Sums of the tile, the vectors of B and one of A must fit the registers: 14 x 2 + 2 + 1 of 32 with
// AVX-512, 6 x 2 + 2 + 1 of 16 before it.
constexpr size_t kTileRows = HWY_CAP_GE512 ? 14 : 6;
constexpr size_t kTileVectors = 2;
static_assert(kTileRows <= kMaxTileRows);

// kVectors vectors of columns from `column` on, for all rows of the strip; b (segments * depth,
// kVectors vectors).
template <bool kPairs, size_t kRows, size_t kVectors>
void MultiplyTile(const StripProduct& p, const float* HWY_RESTRICT b, float* const* c_rows,
                  size_t column) {
  const hn::ScalableTag<float> tag;
  using Vector = hn::Vec<decltype(tag)>;
  const size_t lanes = hn::Lanes(tag);
  const size_t depth = p.depth;
  const size_t a_stride = p.a_stride;
  const bool resume = p.old == StripProduct::Old::kContinue;
  // The unrolling is required: only then are the sums kept in registers.
  Vector sums[kRows][kVectors];
  HWY_UNROLL(16)
  for (size_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) {
      const float* c = c_rows[r] + column + v * lanes;
      // C is written at the end; by then the prefetch has completed.
      __builtin_prefetch(c, /*rw=*/1);
      sums[r][v] = resume ? hn::LoadU(tag, c) : hn::Zero(tag);
    }
  }
  const float* HWY_RESTRICT a = p.a;
  for (size_t segment = 0; segment < p.segments; ++segment, a += p.a_segment_stride) {
    for (size_t k = 0; k < depth; ++k, b += kVectors * lanes) {
      Vector b_vectors[kVectors];
      HWY_UNROLL(4)
      for (size_t v = 0; v < kVectors; ++v) b_vectors[v] = hn::LoadU(tag, b + v * lanes);
      HWY_UNROLL(16)
      for (size_t r = 0; r < kRows; ++r) {
        const Vector a_element = hn::Set(tag, a[r * a_stride + k]);
        HWY_UNROLL(4)
        for (size_t v = 0; v < kVectors; ++v) {
          sums[r][v] = AddProduct<kPairs>(a_element, b_vectors[v], sums[r][v]);
        }
      }
    }
  }
  const float* const* added_rows = p.old == StripProduct::Old::kAdd ? c_rows : p.added_rows;
  if (added_rows != nullptr) {
    HWY_UNROLL(16)
    for (size_t r = 0; r < kRows; ++r) {
      HWY_UNROLL(4)
      for (size_t v = 0; v < kVectors; ++v) {
        const Vector added = hn::LoadU(tag, added_rows[r] + column + v * lanes);
        sums[r][v] = hn::Add(sums[r][v], added);
      }
    }
  }
  HWY_UNROLL(16)
  for (size_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) {
      hn::StoreU(sums[r][v], tag, c_rows[r] + column + v * lanes);
    }
  }
}

using TileFunction = void (*)(const StripProduct&, const float*, float* const*, size_t);

template <bool kPairs, size_t kVectors, size_t... kRowsLessOne>
constexpr std::array<TileFunction, kTileRows> TilesOfWidth(std::index_sequence<kRowsLessOne...>) {
  return {&MultiplyTile<kPairs, kRowsLessOne + 1, kVectors>...};
}

// Indexed by vectors - 1, then rows - 1.
template <bool kPairs>
constexpr std::array<std::array<TileFunction, kTileRows>, kTileVectors> kTiles = {
    TilesOfWidth<kPairs, 1>(std::make_index_sequence<kTileRows>()),
    TilesOfWidth<kPairs, 2>(std::make_index_sequence<kTileRows>())};

// The last columns, where vectors would go past the end of C: computed in a tile on the stack.
void MultiplyLastColumns(const StripProduct& p, TileFunction multiply, const float* b,
                         size_t column) {
  float tile[kTileRows][kMaxTileColumns] = {};
  float added[kTileRows][kMaxTileColumns] = {};
  float* tile_rows[kTileRows];
  const float* added_rows[kTileRows];
  const size_t columns = p.columns - column;
  for (size_t r = 0; r < p.rows; ++r) {
    tile_rows[r] = tile[r];
    added_rows[r] = added[r];
    if (p.added_rows != nullptr) std::copy_n(p.added_rows[r] + column, columns, added[r]);
    if (p.old != StripProduct::Old::kOverwrite) std::copy_n(p.c_rows[r] + column, columns, tile[r]);
  }
  StripProduct in_tile = p;
  if (p.added_rows != nullptr) in_tile.added_rows = added_rows;
  multiply(in_tile, b, tile_rows, 0);
  for (size_t r = 0; r < p.rows; ++r) std::copy_n(tile[r], columns, p.c_rows[r] + column);
}

MicroTile Tile() {
  const size_t lanes = hn::Lanes(hn::ScalableTag<float>());
  return {kTileRows, kTileVectors * lanes, lanes};
}

void Multiply(const StripProduct& p) {
  const MicroTile shape = Tile();
  const auto& tiles = p.pairs ? kTiles<kHasPairProducts> : kTiles<false>;
  const float* b = p.b;
  for (size_t column = 0; column < p.columns; column += shape.columns) {
    const size_t left = p.columns - column;
    const size_t vectors = left <= shape.lanes ? 1 : kTileVectors;
    const TileFunction multiply = tiles[vectors - 1][p.rows - 1];
    if (left >= vectors * shape.lanes) {
      multiply(p, b, p.c_rows, column);
    } else {
      MultiplyLastColumns(p, multiply, b, column);
    }
    b += p.segments * p.depth * vectors * shape.lanes;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(Tile);
HWY_EXPORT(Multiply);

MicroTile ActiveMicroTile() { return HWY_DYNAMIC_DISPATCH(Tile)(); }
void MultiplyStrip(const StripProduct& product) { HWY_DYNAMIC_DISPATCH(Multiply)(product); }

}  // namespace thimble
#endif  // HWY_ONCE
