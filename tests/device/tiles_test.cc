// Products in tiles, by the processor or emulated, compared with sums in doubles.
#include "thimble/device/cpu/gemm/tiles.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/support/emulated_tiles.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/tensor/short_numbers.h"

namespace thimble {
namespace {

TEST(TilesTest, DepthIsTheLargestDivisor) {
  EXPECT_EQ(TileDepth(48), 16U);
  EXPECT_EQ(TileDepth(24), 12U);
  EXPECT_EQ(TileDepth(33), 11U);
  EXPECT_EQ(TileDepth(8), 8U);
}

TEST(TilesTest, ShallowTilesAreLeftToOtherCode) {
  for (const size_t depth : {0, 1, 7, 17, 34, 51}) EXPECT_EQ(TileDepth(depth), 0U) << depth;
}

constexpr size_t kTiledDepth = 24;    // of a segment, in pairs: two tiles
constexpr size_t kTiledAStride = 10;  // rows overlap
constexpr size_t kTiledBStride = 40;
constexpr size_t kTiledSegments = 3;
constexpr size_t kTiledSegmentA = 16 * kTiledAStride + kTiledDepth;
constexpr size_t kTiledSegmentB = kTiledDepth * kTiledBStride;
constexpr size_t kTiledSumsStride = 36;

BF16 TileNumber(size_t index, double step) {
  return ToBF16(static_cast<float>(std::cos(static_cast<double>(index) * step)));
}

// Pair i consists of the numbers 2 i and 2 i + 1.
std::vector<float> TilePairs(size_t count, double step) {
  std::vector<float> pairs(count);
  for (size_t i = 0; i < count; ++i) {
    const uint32_t second = TileNumber(2 * i + 1, step).bits;
    pairs[i] = std::bit_cast<float>(TileNumber(2 * i, step).bits | second << 16);
  }
  return pairs;
}

double PairProduct(size_t a, size_t b) {
  double sum = 0;
  for (size_t i = 0; i < 2; ++i) {
    sum += static_cast<double>(ToFloat(TileNumber(2 * a + i, 1.7))) *
           static_cast<double>(ToFloat(TileNumber(2 * b + i, 0.9)));
  }
  return sum;
}

// The second half of the rows is that of the next segment.
double ExpectedSum(size_t half, size_t row, size_t column) {
  double sum = 0;
  for (size_t s = 0; s < kTiledSegments; ++s) {
    for (size_t k = 0; k < kTiledDepth; ++k) {
      sum += PairProduct((s + half) * kTiledSegmentA + row * kTiledAStride + k,
                         s * kTiledSegmentB + k * kTiledBStride + column);
    }
  }
  return sum;
}

class TileProductsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!PinSimdTarget("amx").ok()) GTEST_SKIP() << "this machine does not multiply pairs";
  }

  std::vector<float> Multiply(TileShape shape, size_t halves, size_t column_tiles, bool adds) {
    TileSegment segments[kTiledSegments];
    for (size_t s = 0; s < kTiledSegments; ++s) {
      segments[s] = {{&a_[s * kTiledSegmentA], &a_[(s + 1) * kTiledSegmentA]},
                     &b_[s * kTiledSegmentB]};
    }
    std::vector<float> sums(2 * kTileSide * kTiledSumsStride, 1.0F);
    const TileRegion region(shape);
    MultiplyTiles({.shape = shape,
                   .segments = segments,
                   .depth = kTiledDepth,
                   .a_stride = kTiledAStride,
                   .b_stride = kTiledBStride,
                   .halves = halves,
                   .column_tiles = column_tiles,
                   .sums = sums.data(),
                   .sums_stride = kTiledSumsStride,
                   .adds = adds});
    return sums;
  }

 private:
  EmulatedTiles tiles_;
  std::vector<float> a_ = TilePairs((kTiledSegments + 1) * kTiledSegmentA, 1.7);
  std::vector<float> b_ = TilePairs(kTiledSegments * kTiledSegmentB, 0.9);
};

TEST_F(TileProductsTest, AgreeWithDoubles) {
  for (const size_t rows : {1, 7, 16}) {
    for (const size_t halves : {1, 2}) {
      for (const size_t columns : {1, 2}) {
        for (const bool adds : {false, true}) {
          const std::vector<float> sums =
              Multiply({rows, TileDepth(kTiledDepth)}, halves, columns, adds);
          for (size_t i = 0; i < sums.size(); ++i) {
            const size_t row = i / kTiledSumsStride;
            const size_t half = row / kTileSide;
            const size_t column = i % kTiledSumsStride;
            const bool written =
                half < halves && row % kTileSide < rows && column < columns * kTileSide;
            const double product = written ? ExpectedSum(half, row % kTileSide, column) : 0;
            EXPECT_NEAR(sums[i], written && !adds ? product : 1 + product, 1e-4)
                << i << ", " << rows << " rows";
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace thimble
