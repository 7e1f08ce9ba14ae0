#include "thimble/data/text/subwords/pair_table.h"

#include <gtest/gtest.h>

namespace thimble {
namespace {

TEST(PairTableTest, NumbersPairsInTheirOrder) {
  PairTable table;
  EXPECT_EQ(table.size(), 0);
  EXPECT_EQ(table.Find({1, 2}), -1);
  EXPECT_EQ(table.FindOrAdd({1, 2}), 0);
  EXPECT_EQ(table.FindOrAdd({2, 1}), 1);
  EXPECT_EQ(table.FindOrAdd({1, 2}), 0);
  EXPECT_EQ(table.size(), 2);
  EXPECT_EQ(table.Find({2, 1}), 1);
  EXPECT_EQ(table.Find({2, 2}), -1);
  EXPECT_EQ(table.pair(1), (NumberPair{2, 1}));
}

TEST(PairTableTest, FindsAllOfMany) {
  PairTable table;
  constexpr int32_t kSide = 150;
  for (int32_t i = 0; i < kSide * kSide; ++i) {
    ASSERT_EQ(table.FindOrAdd({i / kSide, INT32_MAX - i % kSide}), i);
  }
  for (int32_t i = 0; i < kSide * kSide; ++i) {
    ASSERT_EQ(table.Find({i / kSide, INT32_MAX - i % kSide}), i);
  }
  EXPECT_EQ(table.Find({kSide, INT32_MAX}), -1);
  EXPECT_EQ(table.Find({-1, -1}), -1);
}

}  // namespace
}  // namespace thimble
