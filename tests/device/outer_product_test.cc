// Compares sums of outer products with a plain loop in doubles: every number of rows and columns,
// every SIMD target, segments at any offset; only the sums are written.
#include "thimble/device/cpu/gemm/outer_product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "thimble/device/cpu/simd_target.h"

namespace thimble {
namespace {

float NumberAt(size_t index) {
  return static_cast<float>(std::sin(static_cast<double>(index) * 1.7));
}

std::vector<float> OuterNumbers(size_t count) {
  std::vector<float> numbers(count);
  for (size_t i = 0; i < count; ++i) numbers[i] = NumberAt(i);
  return numbers;
}

constexpr size_t kAStep = 17;
constexpr size_t kBStep = 40;
constexpr size_t kSumsStride = 32;
constexpr ptrdiff_t kAOffset = 3;
constexpr ptrdiff_t kBOffset = -5;

// Two segments of seven rows.
void CheckOuterProduct(size_t rows, size_t columns) {
  const std::vector<float> a = OuterNumbers(30 * kAStep);
  const std::vector<float> b = OuterNumbers(30 * kBStep);
  const float* a_segments[] = {a.data() + 11 * kAStep, a.data()};
  const float* b_segments[] = {b.data() + kBStep, b.data() + 9 * kBStep};
  std::vector<float> sums((rows + 1) * kSumsStride, 1.0F);
  AddOuterProducts({.a = a_segments,
                    .b = b_segments,
                    .a_offset = kAOffset,
                    .b_offset = kBOffset,
                    .a_step = kAStep,
                    .b_step = kBStep,
                    .segments = 2,
                    .depth = 7,
                    .rows = rows,
                    .columns = columns,
                    .sums = sums.data(),
                    .sums_stride = kSumsStride});
  for (size_t row = 0; row < rows; ++row) {
    for (size_t column = 0; column < columns; ++column) {
      double expected = 1;
      for (size_t segment = 0; segment < 2; ++segment) {
        for (size_t k = 0; k < 7; ++k) {
          expected += static_cast<double>(a_segments[segment][kAOffset + k * kAStep + row]) *
                      static_cast<double>(b_segments[segment][kBOffset + k * kBStep + column]);
        }
      }
      EXPECT_NEAR(sums[row * kSumsStride + column], expected, 1e-5) << row << ", " << column;
    }
  }
  for (size_t i = rows * kSumsStride; i < sums.size(); ++i) EXPECT_EQ(sums[i], 1.0F);
}

TEST(OuterProductTest, AgreesWithAPlainLoopOnEveryTarget) {
  for (const std::string& target : SupportedSimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_TRUE(PinSimdTarget(target).ok());
    for (size_t rows = 1; rows <= kMaxOuterRows; ++rows) {
      for (size_t columns : {1, 8, 16, 17, 32}) CheckOuterProduct(rows, columns);
    }
  }
  ASSERT_TRUE(PinSimdTarget("auto").ok());
}

TEST(OuterProductTest, NoSegmentsAddNothing) {
  std::vector<float> sums(kSumsStride, 2.0F);
  OuterProduct product;
  product.rows = 1;
  product.columns = kSumsStride;
  product.sums = sums.data();
  product.sums_stride = kSumsStride;
  AddOuterProducts(product);
  EXPECT_EQ(sums, std::vector<float>(kSumsStride, 2.0F));
}

}  // namespace
}  // namespace thimble
