#include "thimble/device/cpu/gemm/outer_product.h"

#include <algorithm>
#include <array>
#include <utility>

// Highway compiles the part between BEFORE_NAMESPACE and AFTER_NAMESPACE once per SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/device/cpu/gemm/outer_product.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/device/cpu/gemm/pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Sums in registers, as in micro_kernel.cc.
constexpr size_t kTileRows = HWY_CAP_GE512 ? 14 : 6;
constexpr size_t kTileVectors = 2;
// GCC 12 vectorises the two one-lane "vectors" of the scalar target and then also reads the next
// k's values, past the end of memory for the last one.
constexpr size_t kUsedVectors = HWY_TARGET == HWY_SCALAR ? 1 : kTileVectors;
static_assert(kTileRows <= kMaxOuterRows);

// Rows [row, row + kRows) and kVectors vectors of columns from `column` on.
template <bool kPairs, size_t kRows, size_t kVectors>
void AddTile(const OuterProduct& p, size_t row, size_t column) {
  const hn::ScalableTag<float> tag;
  using Vector = hn::Vec<decltype(tag)>;
  const size_t lanes = hn::Lanes(tag);
  const size_t a_step = p.a_step;
  const size_t b_step = p.b_step;
  const size_t depth = p.depth;
  // The unrolling is required: only then are the sums kept in registers.
  Vector sums[kRows][kVectors];
  HWY_UNROLL(16)
  for (size_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(tag);
  }
  for (size_t segment = 0; segment < p.segments; ++segment) {
    const float* HWY_RESTRICT a = p.a[segment] + p.a_offset + row;
    const float* HWY_RESTRICT b = p.b[segment] + p.b_offset + column;
    for (size_t k = 0; k < depth; ++k, a += a_step, b += b_step) {
      Vector b_vectors[kVectors];
      HWY_UNROLL(4)
      for (size_t v = 0; v < kVectors; ++v) b_vectors[v] = hn::LoadU(tag, b + v * lanes);
      HWY_UNROLL(16)
      for (size_t r = 0; r < kRows; ++r) {
        const Vector a_element = hn::Set(tag, a[r]);
        HWY_UNROLL(4)
        for (size_t v = 0; v < kVectors; ++v) {
          sums[r][v] = AddProduct<kPairs>(a_element, b_vectors[v], sums[r][v]);
        }
      }
    }
  }
  HWY_UNROLL(16)
  for (size_t r = 0; r < kRows; ++r) {
    float* out = p.sums + (row + r) * p.sums_stride + column;
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v, out += lanes) {
      hn::StoreU(hn::Add(hn::LoadU(tag, out), sums[r][v]), tag, out);
    }
  }
}

using TileFunction = void (*)(const OuterProduct&, size_t, size_t);

template <bool kPairs, size_t kVectors, size_t... kRowsLessOne>
constexpr std::array<TileFunction, kTileRows> TilesOfWidth(std::index_sequence<kRowsLessOne...>) {
  return {&AddTile<kPairs, kRowsLessOne + 1, kVectors>...};
}

// Indexed by vectors - 1, then rows - 1.
template <bool kPairs>
constexpr std::array<std::array<TileFunction, kTileRows>, kTileVectors> kTiles = {
    TilesOfWidth<kPairs, 1>(std::make_index_sequence<kTileRows>()),
    TilesOfWidth<kPairs, 2>(std::make_index_sequence<kTileRows>())};

void Add(const OuterProduct& p) {
  const size_t lanes = hn::Lanes(hn::ScalableTag<float>());
  const size_t tiles = (p.rows + kTileRows - 1) / kTileRows;
  const size_t tile_rows = (p.rows + tiles - 1) / tiles;
  const auto& functions = p.pairs ? kTiles<kHasPairProducts> : kTiles<false>;
  for (size_t column = 0; column < p.columns; column += kUsedVectors * lanes) {
    const size_t vectors = p.columns - column <= lanes ? 1 : kUsedVectors;
    for (size_t row = 0; row < p.rows; row += tile_rows) {
      functions[vectors - 1][std::min(tile_rows, p.rows - row) - 1](p, row, column);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(Add);

void AddOuterProducts(const OuterProduct& product) { HWY_DYNAMIC_DISPATCH(Add)(product); }

}  // namespace thimble
#endif  // HWY_ONCE
