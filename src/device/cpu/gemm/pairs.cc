#include "thimble/device/cpu/gemm/pairs.h"

#include <algorithm>
#include <cstdint>

// Highway compiles the part between BEFORE_NAMESPACE and AFTER_NAMESPACE once per SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/device/cpu/gemm/pairs.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/device/cpu/numbers-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

// The bits of a vector of bf16 numbers, in the lower halves.
template <class Tag>
HWY_INLINE hn::Vec<Bits<Tag>> HalvesOrZero(Tag tag, const BF16* from, size_t i) {
  return from == nullptr ? hn::Zero(Bits<Tag>()) : LoadHalves(tag, &from[i].bits);
}

void JoinNumbers(const BF16* first, const BF16* second, size_t count, float* pairs) {
  ForEachVector(count, [=](auto tag, size_t i) HWY_ATTR {
    const auto upper = hn::ShiftLeft<16>(HalvesOrZero(tag, second, i));
    hn::StoreU(hn::BitCast(tag, hn::Or(upper, HalvesOrZero(tag, first, i))), tag, pairs + i);
  });
}

// The same for bf16 numbers that are stored as floats.
void JoinFloats(const float* first, const float* second, size_t count, float* pairs) {
  ForEachVector(count, [=](auto tag, size_t i) HWY_ATTR {
    const Bits<decltype(tag)> bits;
    const auto lower = hn::ShiftRight<16>(hn::BitCast(bits, hn::LoadU(tag, first + i)));
    hn::StoreU(hn::Or(hn::LoadU(tag, second + i), hn::BitCast(tag, lower)), tag, pairs + i);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(JoinNumbers);
HWY_EXPORT(JoinFloats);

void PairNumbers(const BF16* first, const BF16* second, size_t count, float* pairs) {
  HWY_DYNAMIC_DISPATCH(JoinNumbers)(first, second, count, pairs);
}

void PackPairs(const Packer& packer, const MatrixBlock& block, float* panel, size_t stride) {
  constexpr size_t kRows = 16;
  constexpr size_t kColumns = 32;
  alignas(64) float rows[2 * kRows * kColumns];
  for (size_t row = 0; row < block.rows; row += kRows) {
    const size_t num_rows = std::min(kRows, block.rows - row);
    for (size_t column = 0; column < block.columns; column += kColumns) {
      const size_t columns = std::min(kColumns, block.columns - column);
      packer({2 * (block.row + row), 2 * num_rows, block.column + column, columns}, rows, kColumns);
      for (size_t r = 0; r < num_rows; ++r) {
        const float* pair = rows + 2 * r * kColumns;
        HWY_DYNAMIC_DISPATCH(JoinFloats)
        (pair, pair + kColumns, columns, panel + (row + r) * stride + column);
      }
    }
  }
}

}  // namespace thimble
#endif  // HWY_ONCE
