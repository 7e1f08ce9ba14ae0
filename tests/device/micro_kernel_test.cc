// The innermost product on rows that overlap and are divided into segments, and how it treats the
// old C. Tails and targets are tested in gemm_test.cc.
#include "thimble/device/cpu/gemm/micro_kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "thimble/device/cpu/simd_target.h"

namespace thimble {
namespace {

constexpr size_t kTileRows = 5;
constexpr size_t kTileColumns = 21;  // a tail on every target
constexpr size_t kSegments = 3;
constexpr size_t kTileDepth = 6;
constexpr size_t kTileStride = 2;  // rows overlap
constexpr size_t kSegmentStride = 23;

std::vector<float> TileNumbers(size_t count) {
  std::vector<float> numbers(count);
  for (size_t i = 0; i < count; ++i) {
    numbers[i] = static_cast<float>(std::cos(static_cast<double>(i) * 2.3));
  }
  return numbers;
}

// Windows of an image of three lines times a matrix; segments [first, last) of it.
class KernelProduct {
 public:
  KernelProduct()
      : a_(TileNumbers(kSegments * kSegmentStride)),
        b_(TileNumbers(kSegments * kTileDepth * kTileColumns)) {}

  void Multiply(size_t first, size_t last, StripProduct::Old old, std::vector<float>& c) const {
    const std::vector<float> packed = Pack(first, last);
    float* rows[kTileRows];
    for (size_t r = 0; r < kTileRows; ++r) rows[r] = c.data() + r * kTileColumns;
    StripProduct product;
    product.a = a_.data() + first * kSegmentStride;
    product.a_stride = kTileStride;
    product.a_segment_stride = kSegmentStride;
    product.b = packed.data();
    product.c_rows = rows;
    product.rows = kTileRows;
    product.columns = kTileColumns;
    product.segments = last - first;
    product.depth = kTileDepth;
    product.old = old;
    MultiplyStrip(product);
  }

  double Expected(size_t row, size_t column) const {
    double sum = 0;
    for (size_t s = 0; s < kSegments; ++s) {
      for (size_t k = 0; k < kTileDepth; ++k) {
        sum += static_cast<double>(a_[s * kSegmentStride + row * kTileStride + k]) *
               static_cast<double>(b_[(s * kTileDepth + k) * kTileColumns + column]);
      }
    }
    return sum;
  }

 private:
  std::vector<float> Pack(size_t first, size_t last) const {
    const MicroTile tile = ActiveMicroTile();
    std::vector<float> packed;
    for (size_t begin = 0; begin < kTileColumns; begin += tile.columns) {
      const size_t width = kTileColumns - begin <= tile.lanes ? tile.lanes : tile.columns;
      for (size_t k = first * kTileDepth; k < last * kTileDepth; ++k) {
        for (size_t column = begin; column < begin + width; ++column) {
          packed.push_back(column < kTileColumns ? b_[k * kTileColumns + column] : 0.0F);
        }
      }
    }
    return packed;
  }

  std::vector<float> a_;
  std::vector<float> b_;
};

using Old = StripProduct::Old;

TEST(MicroKernelTest, SegmentsAreSummedAndOldNumbersTreatedAsAsked) {
  const KernelProduct product;
  for (const std::string& target : SupportedSimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_TRUE(PinSimdTarget(target).ok());
    std::vector<float> c(kTileRows * kTileColumns, NAN);
    std::vector<float> added(kTileRows * kTileColumns, 1.0F);
    product.Multiply(0, kSegments, Old::kOverwrite, c);
    product.Multiply(0, kSegments, Old::kAdd, added);
    for (size_t i = 0; i < c.size(); ++i) {
      EXPECT_NEAR(c[i], product.Expected(i / kTileColumns, i % kTileColumns), 1e-5) << i;
      EXPECT_EQ(added[i], 1.0F + c[i]) << i;
    }
  }
  ASSERT_TRUE(PinSimdTarget("auto").ok());
}

TEST(MicroKernelTest, AContinuedChainHasTheBitsOfAnUncutOne) {
  const KernelProduct product;
  for (const std::string& target : SupportedSimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_TRUE(PinSimdTarget(target).ok());
    std::vector<float> whole(kTileRows * kTileColumns, NAN);
    std::vector<float> cut(kTileRows * kTileColumns, NAN);
    product.Multiply(0, kSegments, Old::kOverwrite, whole);
    product.Multiply(0, 1, Old::kOverwrite, cut);
    product.Multiply(1, kSegments, Old::kContinue, cut);
    EXPECT_EQ(cut, whole);
  }
  ASSERT_TRUE(PinSimdTarget("auto").ok());
}

}  // namespace
}  // namespace thimble
