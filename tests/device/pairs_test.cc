// Pairs of bf16 numbers: how they are made, and both innermost products with them, compared with
// sums in doubles.
#include "thimble/device/cpu/gemm/pairs.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "thimble/device/cpu/gemm/micro_kernel.h"
#include "thimble/device/cpu/gemm/outer_product.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/tensor/short_numbers.h"

namespace thimble {
namespace {

std::vector<BF16> PairTestNumbers(size_t count, double step) {
  std::vector<BF16> numbers(count);
  for (size_t i = 0; i < count; ++i) {
    numbers[i] = ToBF16(static_cast<float>(std::cos(static_cast<double>(i) * step)));
  }
  return numbers;
}

uint32_t PairBits(BF16 first, BF16 second) {
  return first.bits | static_cast<uint32_t>(second.bits) << 16;
}

double Product(BF16 a, BF16 b) {
  return static_cast<double>(ToFloat(a)) * static_cast<double>(ToFloat(b));
}

// Calls check with each target, then goes back to the best.
template <class Check>
void OnEveryTarget(const Check& check) {
  for (const std::string& target : SupportedSimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_TRUE(PinSimdTarget(target).ok());
    check();
  }
  ASSERT_TRUE(PinSimdTarget("auto").ok());
}

TEST(PairsTest, AreTwoNumbersAtTheSamePlace) {
  constexpr size_t kCount = 37;
  const std::vector<BF16> first = PairTestNumbers(kCount, 1.1);
  const std::vector<BF16> second = PairTestNumbers(kCount, 2.3);
  OnEveryTarget([&] {
    std::vector<float> both(kCount + 1, 7.0F);
    std::vector<float> alone(kCount + 1, 7.0F);
    PairNumbers(first.data(), second.data(), kCount, both.data());
    PairNumbers(nullptr, second.data(), kCount, alone.data());
    for (size_t i = 0; i < kCount; ++i) {
      EXPECT_EQ(std::bit_cast<uint32_t>(both[i]), PairBits(first[i], second[i])) << i;
      EXPECT_EQ(std::bit_cast<uint32_t>(alone[i]), PairBits({}, second[i])) << i;
    }
    EXPECT_EQ(both.back(), 7.0F);
    EXPECT_EQ(alone.back(), 7.0F);
  });
}

TEST(PairsTest, RowsOfAPackerArePaired) {
  constexpr size_t kRows = 19;
  constexpr size_t kColumns = 45;
  constexpr size_t kStride = 50;
  const std::vector<BF16> numbers = PairTestNumbers((2 * kRows + 2) * kColumns, 1.3);
  const PlainPacker packer({numbers.data(), DType::kBF16}, kColumns);
  OnEveryTarget([&] {
    std::vector<float> panel(kRows * kStride, 7.0F);
    PackPairs(packer, {1, kRows, 0, kColumns}, panel.data(), kStride);
    for (size_t i = 0; i < panel.size(); ++i) {
      const size_t row = 2 * (1 + i / kStride);
      const size_t column = i % kStride;
      if (column >= kColumns) {
        EXPECT_EQ(panel[i], 7.0F);
        continue;
      }
      const BF16* number = &numbers[row * kColumns + column];
      EXPECT_EQ(std::bit_cast<uint32_t>(panel[i]), PairBits(number[0], number[kColumns])) << i;
    }
  });
}

class PairProductsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!MultipliesPairs()) GTEST_SKIP() << "this machine does not multiply pairs";
  }
};

// A (rows, depth) * B (depth, columns), pairs along the depth.
struct PairedOperands {
  static constexpr size_t kDepth = 22;
  PairedOperands(size_t rows, size_t num_columns)
      : columns(num_columns),
        a(PairTestNumbers(rows * kDepth, 1.7)),
        b(PairTestNumbers(kDepth * columns, 0.9)) {}

  double Expected(size_t row, size_t column) const {
    double sum = 0;
    for (size_t k = 0; k < kDepth; ++k) {
      sum += Product(a[row * kDepth + k], b[k * columns + column]);
    }
    return sum;
  }

  size_t columns;
  std::vector<BF16> a;
  std::vector<BF16> b;
};

// Pairs [first, last) of the depth.
void MultiplyPairs(const PairedOperands& operands, size_t rows, size_t first, size_t last,
                   StripProduct::Old old, std::vector<float>& c) {
  constexpr size_t kPairs = PairedOperands::kDepth / 2;
  const MicroTile tile = ActiveMicroTile();
  const size_t width = operands.columns <= tile.lanes ? tile.lanes : tile.columns;
  std::vector<float> a(rows * kPairs);
  for (size_t i = 0; i < a.size(); ++i) {
    PairNumbers(&operands.a[2 * i], &operands.a[2 * i + 1], 1, &a[i]);
  }
  std::vector<float> b((last - first) * width, 0.0F);
  PackPairs(PlainPacker({operands.b.data(), DType::kBF16}, operands.columns),
            {first, last - first, 0, operands.columns}, b.data(), width);
  std::vector<float*> c_rows(rows);
  for (size_t r = 0; r < rows; ++r) c_rows[r] = c.data() + r * operands.columns;
  StripProduct product;
  product.a = a.data() + first;
  product.a_stride = kPairs;
  product.b = b.data();
  product.c_rows = c_rows.data();
  product.rows = rows;
  product.columns = operands.columns;
  product.depth = last - first;
  product.pairs = true;
  product.old = old;
  MultiplyStrip(product);
}

TEST_F(PairProductsTest, StripsAgreeWithDoubles) {
  for (size_t rows = 1; rows <= ActiveMicroTile().rows; ++rows) {
    for (const size_t columns : {1, 15, 16, 21, 32}) {
      const PairedOperands operands(rows, columns);
      std::vector<float> c(rows * columns, NAN);
      MultiplyPairs(operands, rows, 0, PairedOperands::kDepth / 2, StripProduct::Old::kOverwrite,
                    c);
      for (size_t i = 0; i < c.size(); ++i) {
        EXPECT_NEAR(c[i], operands.Expected(i / columns, i % columns), 1e-5) << i;
      }
    }
  }
}

TEST_F(PairProductsTest, AContinuedChainHasTheBitsOfAnUncutOne) {
  const PairedOperands operands(5, 21);
  std::vector<float> whole(5 * 21, NAN);
  std::vector<float> cut(5 * 21, NAN);
  MultiplyPairs(operands, 5, 0, 11, StripProduct::Old::kOverwrite, whole);
  MultiplyPairs(operands, 5, 0, 4, StripProduct::Old::kOverwrite, cut);
  MultiplyPairs(operands, 5, 4, 11, StripProduct::Old::kContinue, cut);
  EXPECT_EQ(cut, whole);
}

TEST_F(PairProductsTest, OuterProductsAgreeWithDoubles) {
  constexpr size_t kDepth = 9;
  constexpr size_t kStep = 40;
  const std::vector<BF16> a = PairTestNumbers(2 * kDepth * kStep, 1.7);
  const std::vector<BF16> b = PairTestNumbers(2 * kDepth * kStep, 0.9);
  std::vector<float> a_pairs(kDepth * kStep);
  std::vector<float> b_pairs(kDepth * kStep);
  PairNumbers(a.data(), a.data() + kDepth * kStep, a_pairs.size(), a_pairs.data());
  PairNumbers(b.data(), b.data() + kDepth * kStep, b_pairs.size(), b_pairs.data());
  const float* a_segment = a_pairs.data();
  const float* b_segment = b_pairs.data();
  for (size_t rows = 1; rows <= kMaxOuterRows; ++rows) {
    for (const size_t columns : {16, 32}) {
      std::vector<float> sums(rows * columns, 1.0F);
      AddOuterProducts({.a = &a_segment,
                        .b = &b_segment,
                        .a_step = kStep,
                        .b_step = kStep,
                        .segments = 1,
                        .depth = kDepth,
                        .rows = rows,
                        .columns = columns,
                        .sums = sums.data(),
                        .sums_stride = columns,
                        .pairs = true});
      for (size_t i = 0; i < sums.size(); ++i) {
        double expected = 1;
        for (size_t k = 0; k < 2 * kDepth; ++k) {
          expected += Product(a[k * kStep + i / columns], b[k * kStep + i % columns]);
        }
        EXPECT_NEAR(sums[i], expected, 1e-5) << i;
      }
    }
  }
}

}  // namespace
}  // namespace thimble
