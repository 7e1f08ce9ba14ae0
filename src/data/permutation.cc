#include "thimble/data/permutation.h"

#include "thimble/base/check.h"

namespace thimble {
namespace {

// Four rounds look random enough without an adversary; eight also do for tiny grids.
constexpr uint32_t kRounds = 8;

// Smallest s with s * s >= n.
uint32_t CeilSqrt(uint64_t n) {
  uint64_t low = 1;
  uint64_t high = uint64_t{1} << 16;
  while (low < high) {
    const uint64_t middle = (low + high) / 2;
    if (middle * middle >= n) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return static_cast<uint32_t>(low);
}

}  // namespace

int64_t PermuteIndex(const RandomSource& source, uint32_t epoch, int64_t n, int64_t position) {
  THIMBLE_CHECK(n >= 1 && n <= UINT32_MAX, "a permutation of {} elements", n);
  THIMBLE_CHECK(position >= 0 && position < n, "position {} of {}", position, n);
  const auto count = static_cast<uint64_t>(n);
  const uint32_t rows = CeilSqrt(count);
  const auto columns = static_cast<uint32_t>((count + rows - 1) / rows);
  auto cell = static_cast<uint64_t>(position);
  do {
    auto row = static_cast<uint32_t>(cell / columns);
    auto column = static_cast<uint32_t>(cell % columns);
    for (uint32_t round = 0; round < kRounds; round += 2) {
      const uint32_t row_shift = UniformBelow(source.Words(epoch, round, column)[0], rows);
      row = (row + row_shift) % rows;
      const uint32_t column_shift = UniformBelow(source.Words(epoch, round + 1, row)[0], columns);
      column = (column + column_shift) % columns;
    }
    cell = uint64_t{row} * columns + column;
  } while (cell >= count);
  return static_cast<int64_t>(cell);
}

}  // namespace thimble
