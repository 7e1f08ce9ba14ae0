#include "thimble/device/cpu/softmax_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/op_inputs.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/ops/softmax_formula.h"

namespace thimble {
namespace {

using Doubles = std::vector<double>;

void ForEachTarget(void (*body)()) {
  for (const std::string& target : SupportedSimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_TRUE(PinSimdTarget(target).ok());
    body();
  }
  ASSERT_TRUE(PinSimdTarget("auto").ok());
}

// Two rows, their padding NaN.
struct PaddedRows {
  explicit PaddedRows(size_t width)
      : shape{.rows = 2, .width = width, .stride = PaddedSoftmaxWidth(width) + 16},
        floats(shape.rows * shape.stride, NAN) {}
  PaddedRows(size_t width, const Doubles& numbers) : PaddedRows(width) {
    for (size_t i = 0; i < numbers.size(); ++i) At(i / width)[i % width] = Rounded(numbers[i]);
  }
  static float Rounded(double number) { return static_cast<float>(number); }
  float* At(size_t row) { return floats.data() + row * shape.stride; }

  SoftmaxRows shape;
  std::vector<float> floats;
};

TEST(SoftmaxRows, AgreeWithTheFormulaAtEveryWidth) {
  ForEachTarget([] {
    for (size_t width = 1; width <= 70; ++width) {
      PaddedRows rows(width, RandomNormals(5, 1, 2 * width));
      for (float& number : rows.floats) number *= 4;
      Doubles expected(rows.At(1), rows.At(1) + width);
      for (double& number : expected) number *= 0.75;
      ReplaceBySoftmax(expected.data(), static_cast<int64_t>(width));
      SoftmaxInPlace(rows.shape, 0.75F, rows.floats.data());
      for (size_t i = 0; i < width; ++i) {
        EXPECT_NEAR(rows.At(1)[i], expected[i], 2e-6 * expected[i]) << width << ", " << i;
      }
    }
  });
}

TEST(SoftmaxRowGradients, AgreeWithTheFormulaAtEveryWidth) {
  ForEachTarget([] {
    for (size_t width = 1; width <= 70; ++width) {
      PaddedRows probabilities(width, RandomNormals(5, 1, 2 * width));
      PaddedRows gradients(width, RandomNormals(5, 2, 2 * width));
      SoftmaxInPlace(probabilities.shape, 1, probabilities.floats.data());
      const Doubles p(probabilities.At(1), probabilities.At(1) + width);
      Doubles expected(gradients.At(1), gradients.At(1) + width);
      ReplaceBySoftmaxGradient(p.data(), expected.data(), static_cast<int64_t>(width));
      SoftmaxGradientInPlace(gradients.shape, 0.5F, probabilities.floats.data(),
                             gradients.floats.data());
      for (size_t i = 0; i < width; ++i) {
        EXPECT_NEAR(gradients.At(1)[i], 0.5 * expected[i], 1e-6) << width << ", " << i;
      }
    }
  });
}

TEST(SoftmaxRowGradients, OfASureRowKeepTheirDigits) {
  ForEachTarget([] {
    PaddedRows probabilities(2, {18, 0, 18, 0});
    PaddedRows gradients(2, {1000, 1001, 1000, 1001});
    SoftmaxInPlace(probabilities.shape, 1, probabilities.floats.data());
    SoftmaxGradientInPlace(gradients.shape, 1, probabilities.floats.data(),
                           gradients.floats.data());
    const double small = 1 / (1 + std::exp(18.0));
    EXPECT_NEAR(gradients.At(0)[0], -small, 1e-5 * small);
    EXPECT_NEAR(gradients.At(0)[1], small, 1e-5 * small);
  });
}

TEST(SoftmaxRows, LargeNumbersDoNotOverflowAndNanFillsItsRow) {
  ForEachTarget([] {
    PaddedRows rows(3, {3e38, -3e38, 3e38, 0, NAN, 1});
    SoftmaxInPlace(rows.shape, 1, rows.floats.data());
    EXPECT_EQ(std::vector<float>(rows.At(0), rows.At(0) + 3), (std::vector<float>{0.5F, 0, 0.5F}));
    for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(rows.At(1)[i])) << i;
  });
}

TEST(SoftmaxRows, AnInfiniteMaximumGivesNanAndAnImpossibleOneZero) {
  ForEachTarget([] {
    PaddedRows rows(2, {INFINITY, 0, -INFINITY, 0});
    SoftmaxInPlace(rows.shape, 1, rows.floats.data());
    EXPECT_TRUE(std::isnan(rows.At(0)[0]) && std::isnan(rows.At(0)[1]));
    EXPECT_EQ(rows.At(1)[0], 0);
    EXPECT_EQ(rows.At(1)[1], 1);
  });
}

}  // namespace
}  // namespace thimble
