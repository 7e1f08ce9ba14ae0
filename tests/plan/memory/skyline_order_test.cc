#include "thimble/plan/memory/skyline_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace thimble {
namespace {

using Order = std::vector<uint32_t>;

TEST(SkylineOrderTest, TakesThePreferredItemFirst) {
  const std::vector<PackItem> items = {{300, 0, 1}, {100, 0, 3}};
  EXPECT_EQ(MakeSkylineOrder(items, ValleyChoice::kLongest), (Order{1, 0}));
  EXPECT_EQ(MakeSkylineOrder(items, ValleyChoice::kLargest), (Order{0, 1}));
}

TEST(SkylineOrderTest, FillsTheLowestValleyBeforeItGoesUp) {
  // 0 covers all; 1 is on its left half; then 3 fits next to it, 2 only on top of both.
  const std::vector<PackItem> items = {{64, 0, 4}, {64, 0, 2}, {64, 1, 3}, {64, 2, 4}};
  EXPECT_EQ(MakeSkylineOrder(items, ValleyChoice::kLongest), (Order{0, 1, 3, 2}));
}

TEST(SkylineOrderTest, ItemsThatLiveForNoMomentComeLast) {
  const std::vector<PackItem> items = {{64, 1, 1}, {64, 0, 2}, {128, 0, 0}};
  EXPECT_EQ(MakeSkylineOrder(items, ValleyChoice::kLargest), (Order{1, 2, 0}));
  EXPECT_TRUE(MakeSkylineOrder({}, ValleyChoice::kLongest).empty());
}

TEST(SkylineOrderTest, IsAPermutation) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::vector<PackItem> items(1 + random() % 30);
    for (PackItem& item : items) {
      item.size_bytes = 1 + random() % 100;
      item.first = static_cast<uint32_t>(random() % 20);
      item.end = item.first + static_cast<uint32_t>(random() % 10);
    }
    Order expected(items.size());
    std::iota(expected.begin(), expected.end(), 0);
    for (ValleyChoice choice : {ValleyChoice::kLongest, ValleyChoice::kLargest}) {
      Order order = MakeSkylineOrder(items, choice);
      std::sort(order.begin(), order.end());
      EXPECT_EQ(order, expected) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace thimble
