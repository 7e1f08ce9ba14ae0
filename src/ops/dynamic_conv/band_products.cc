#include "thimble/ops/dynamic_conv/band_products.h"

#include <algorithm>
#include <array>
#include <utility>

// Highway compiles the part between BEFORE_NAMESPACE and AFTER_NAMESPACE once per SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/ops/dynamic_conv/band_products.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/device/cpu/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Tiles of SumBand: sums, the vectors of an input row and a weight must fit the registers, 4 x 4 +
// 4 + 1 of 32 with AVX-512, 4 x 2 + 2 + 1 of 16 before it. Few rows, because near its ends a window
// does not cover all rows of the tile. (GCC 12 would vectorise the one-lane vectors of the scalar
// target and then read past the end of a row.)
constexpr size_t kSumRows = 4;
constexpr size_t kSumVectors = HWY_TARGET == HWY_SCALAR ? 1 : (HWY_CAP_GE512 ? 4 : 2);

// Rows [row, row + kRows) of out and kVectors vectors of channels from `channel` on.
template <size_t kRows, size_t kVectors, class Tag>
void SumTile(Tag tag, const BandSum& p, size_t row, size_t channel) {
  using Vector = hn::Vec<Tag>;
  const size_t lanes = hn::Lanes(tag);
  const auto first = static_cast<ptrdiff_t>(row);
  const ptrdiff_t last = first + static_cast<ptrdiff_t>(kRows) - 1;
  const ptrdiff_t begin = std::max<ptrdiff_t>(0, first - p.before);
  const ptrdiff_t end = std::min(static_cast<ptrdiff_t>(p.positions), last + p.after + 1);
  // Positions in the windows of all rows.
  const ptrdiff_t common_begin = std::clamp(last - p.before, begin, end);
  const ptrdiff_t common_end = std::clamp(first + p.after + 1, common_begin, end);
  // The unrolling is required: only then are the sums kept in registers.
  Vector sums[kRows][kVectors];
  HWY_UNROLL(4)
  for (size_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) {
      // It is written at the end; by then the prefetch has completed.
      __builtin_prefetch(p.out + (row + r) * p.out_stride + channel + v * lanes, /*rw=*/1);
      sums[r][v] = hn::Zero(tag);
    }
  }
  const auto add = [&](ptrdiff_t s, auto is_common) HWY_ATTR {
    const float* in = p.in + static_cast<size_t>(s) * p.channels + channel;
    const float* weights = p.band + first * p.out_step + s * p.in_step;
    Vector in_vectors[kVectors];
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) in_vectors[v] = hn::LoadU(tag, in + v * lanes);
    HWY_UNROLL(4)
    for (size_t r = 0; r < kRows; ++r) {
      const ptrdiff_t position = first + static_cast<ptrdiff_t>(r);
      if (!is_common() && (s < position - p.before || s > position + p.after)) continue;
      const Vector weight = hn::Set(tag, weights[static_cast<ptrdiff_t>(r) * p.out_step]);
      HWY_UNROLL(4)
      for (size_t v = 0; v < kVectors; ++v) {
        sums[r][v] = hn::MulAdd(weight, in_vectors[v], sums[r][v]);
      }
    }
  };
  for (ptrdiff_t s = begin; s < common_begin; ++s) add(s, std::false_type());
  for (ptrdiff_t s = common_begin; s < common_end; ++s) add(s, std::true_type());
  for (ptrdiff_t s = common_end; s < end; ++s) add(s, std::false_type());
  HWY_UNROLL(4)
  for (size_t r = 0; r < kRows; ++r) {
    float* out = p.out + (row + r) * p.out_stride + channel;
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) hn::StoreU(sums[r][v], tag, out + v * lanes);
  }
}

template <size_t kRows>
void SumRows(const BandSum& p, size_t row) {
  const WideTag wide;
  const size_t lanes = hn::Lanes(wide);
  size_t channel = 0;
  for (; channel + kSumVectors * lanes <= p.channels; channel += kSumVectors * lanes) {
    SumTile<kRows, kSumVectors>(wide, p, row, channel);
  }
  for (; channel + lanes <= p.channels; channel += lanes) SumTile<kRows, 1>(wide, p, row, channel);
  for (; channel < p.channels; ++channel) SumTile<kRows, 1>(OneLaneTag(), p, row, channel);
}

void Sum(const BandSum& p) {
  static_assert(kSumRows == 4);
  size_t row = 0;
  for (; row + 4 <= p.positions; row += 4) SumRows<4>(p, row);
  const size_t left = p.positions - row;
  if (left == 3) SumRows<3>(p, row);
  if (left == 2) SumRows<2>(p, row);
  if (left == 1) SumRows<1>(p, row);
}

// Tiles of MultiplyBand, rows of a times rows of b: sums, vectors of b and one of a.
constexpr size_t kDotRows = HWY_CAP_GE512 ? 4 : 3;
constexpr size_t kDotColumns = HWY_CAP_GE512 ? 4 : 3;

// Rows [row, row + kRows) of a times rows [column, column + kColumns) of b.
template <size_t kRows, size_t kColumns>
void DotTile(const BandDots& p, size_t row, size_t column) {
  const WideTag wide;
  const OneLaneTag one;
  const size_t lanes = hn::Lanes(wide);
  const float* a = p.a + row * p.channels;
  const float* b = p.b + column * p.channels;
  const auto multiply = [&](auto tag, size_t channel, auto& sums) HWY_ATTR {
    hn::Vec<decltype(tag)> b_vectors[kColumns];
    HWY_UNROLL(4)
    for (size_t j = 0; j < kColumns; ++j) {
      b_vectors[j] = hn::LoadU(tag, b + j * p.channels + channel);
    }
    HWY_UNROLL(4)
    for (size_t i = 0; i < kRows; ++i) {
      const auto a_vector = hn::LoadU(tag, a + i * p.channels + channel);
      HWY_UNROLL(4)
      for (size_t j = 0; j < kColumns; ++j) {
        sums[i][j] = hn::MulAdd(a_vector, b_vectors[j], sums[i][j]);
      }
    }
  };
  hn::Vec<WideTag> sums[kRows][kColumns];
  hn::Vec<OneLaneTag> rest[kRows][kColumns];
  HWY_UNROLL(4)
  for (size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(4)
    for (size_t j = 0; j < kColumns; ++j) {
      sums[i][j] = hn::Zero(wide);
      rest[i][j] = hn::Zero(one);
    }
  }
  size_t channel = 0;
  for (; channel + lanes <= p.channels; channel += lanes) multiply(wide, channel, sums);
  for (; channel < p.channels; ++channel) multiply(one, channel, rest);
  HWY_UNROLL(4)
  for (size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(4)
    for (size_t j = 0; j < kColumns; ++j) {
      const ptrdiff_t tap =
          static_cast<ptrdiff_t>(column + j) - static_cast<ptrdiff_t>(row + i) + p.before;
      if (tap < 0 || tap >= static_cast<ptrdiff_t>(p.taps)) continue;
      p.products[(row + i) * p.stride + static_cast<size_t>(tap)] =
          hn::GetLane(hn::SumOfLanes(wide, sums[i][j])) + hn::GetLane(rest[i][j]);
    }
  }
}

using DotFunction = void (*)(const BandDots&, size_t, size_t);

template <size_t kRows, size_t... kColumnsLessOne>
constexpr std::array<DotFunction, kDotColumns> DotTilesOfHeight(
    std::index_sequence<kColumnsLessOne...>) {
  return {&DotTile<kRows, kColumnsLessOne + 1>...};
}

template <size_t... kRowsLessOne>
constexpr std::array<std::array<DotFunction, kDotColumns>, kDotRows> AllDotTiles(
    std::index_sequence<kRowsLessOne...>) {
  return {DotTilesOfHeight<kRowsLessOne + 1>(std::make_index_sequence<kDotColumns>())...};
}

// Indexed by rows - 1, then columns - 1.
constexpr auto kDotTiles = AllDotTiles(std::make_index_sequence<kDotRows>());

void Multiply(const BandDots& p) {
  for (size_t t = 0; t < p.positions; ++t) {
    std::fill_n(p.products + t * p.stride, p.taps, 0.0F);
  }
  const auto positions = static_cast<ptrdiff_t>(p.positions);
  const ptrdiff_t after = static_cast<ptrdiff_t>(p.taps) - 1 - p.before;
  for (size_t row = 0; row < p.positions; row += kDotRows) {
    const size_t rows = std::min(kDotRows, p.positions - row);
    const auto first = static_cast<ptrdiff_t>(row);
    const auto begin = static_cast<size_t>(std::max<ptrdiff_t>(0, first - p.before));
    const auto end =
        static_cast<size_t>(std::min(positions, first + static_cast<ptrdiff_t>(rows) + after));
    for (size_t column = begin; column < end; column += kDotColumns) {
      kDotTiles[rows - 1][std::min(kDotColumns, end - column) - 1](p, row, column);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(Sum);
HWY_EXPORT(Multiply);

void SumBand(const BandSum& sum) { HWY_DYNAMIC_DISPATCH(Sum)(sum); }
void MultiplyBand(const BandDots& dots) { HWY_DYNAMIC_DISPATCH(Multiply)(dots); }

}  // namespace thimble
#endif  // HWY_ONCE
