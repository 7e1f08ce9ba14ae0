#include "thimble/data/permutation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace thimble {
namespace {

std::vector<int64_t> WholePermutation(uint64_t seed, uint32_t epoch, int64_t n) {
  const RandomSource source(seed, RandomPurpose::kShuffle);
  std::vector<int64_t> order(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) order[i] = PermuteIndex(source, epoch, n, i);
  return order;
}

void ExpectBijection(const std::vector<int64_t>& order) {
  std::vector<bool> seen(order.size(), false);
  for (const int64_t index : order) {
    ASSERT_TRUE(index >= 0 && index < std::ssize(order)) << index;
    ASSERT_FALSE(seen[index]) << index << " twice of " << order.size();
    seen[index] = true;
  }
}

TEST(PermutationTest, IsABijectionForEverySize) {
  for (int64_t n = 1; n <= 300; ++n) ExpectBijection(WholePermutation(7, 3, n));
  for (const int64_t n : {1023, 1024, 1025, 10000, 45000, 50000}) {
    for (const uint32_t epoch : {0, 1, 199}) ExpectBijection(WholePermutation(7, epoch, n));
  }
}

TEST(PermutationTest, TakesTheLargestSize) {
  const RandomSource source(1, RandomPurpose::kShuffle);
  const int64_t n = UINT32_MAX;
  const int64_t last = PermuteIndex(source, 0, n, n - 1);
  EXPECT_TRUE(last >= 0 && last < n);
  EXPECT_NE(last, PermuteIndex(source, 0, n, 0));
}

TEST(PermutationTest, EpochsAndSeedsDiffer) {
  const auto order = WholePermutation(1, 0, 1000);
  EXPECT_EQ(order, WholePermutation(1, 0, 1000));
  EXPECT_NE(order, WholePermutation(1, 1, 1000));
  EXPECT_NE(order, WholePermutation(2, 0, 1000));
}

// Each index is at each position about equally often: chi-square over the cells of the table.
TEST(PermutationTest, IsRoughlyUniform) {
  constexpr int kEpochs = 6000;
  for (const int64_t n : {2, 3, 5, 7, 10, 16}) {
    std::vector<int> hits(static_cast<size_t>(n * n), 0);
    for (uint32_t epoch = 0; epoch < kEpochs; ++epoch) {
      const auto order = WholePermutation(11, epoch, n);
      for (int64_t position = 0; position < n; ++position) ++hits[position * n + order[position]];
    }
    const double expected = static_cast<double>(kEpochs) / static_cast<double>(n);
    double chi_square = 0;
    for (const int count : hits) chi_square += (count - expected) * (count - expected) / expected;
    // A table with fixed row and column sums has (n - 1)^2 degrees of freedom; five deviations
    // above.
    const double freedom = static_cast<double>((n - 1) * (n - 1));
    EXPECT_LT(chi_square, freedom + 5 * std::sqrt(2 * freedom) + 5) << n;
  }
}

// Neighbours do not stay neighbours: the mean distance in a random permutation is n / 3.
TEST(PermutationTest, NeighboursPart) {
  constexpr int64_t kSize = 50000;
  const auto order = WholePermutation(5, 2, kSize);
  double jumps = 0;
  for (int64_t i = 1; i < kSize; ++i)
    jumps += static_cast<double>(std::abs(order[i] - order[i - 1]));
  EXPECT_NEAR(jumps / (kSize - 1) / kSize, 1.0 / 3, 0.01);
}

}  // namespace
}  // namespace thimble
