#include "thimble/plan/memory/improve_order.h"

#include <gtest/gtest.h>

#include <random>

namespace thimble {
namespace {

// 1 and 2 are below 0 in a bad packing order and next to each other in a good one.
const std::vector<PackItem> kOrdered = {{64, 0, 2}, {64, 0, 1}, {128, 1, 3}, {64, 2, 3}};

Packing PackAsTheyCome(const std::vector<PackItem>& items) {
  std::vector<uint32_t> order(items.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  Packing packing;
  EXPECT_TRUE(ItemPacker(items).Pack(order, Fit::kLowest, kNoLimit, packing));
  return packing;
}

TEST(ImproveOrderTest, FindsABetterOrder) {
  const std::vector<PackItem> items = {
      {64, 0, 1}, {64, 0, 2}, {128, 1, 3}, {64, 2, 4}, {128, 3, 4}};
  const Packing start = PackAsTheyCome(items);
  ASSERT_EQ(start.peak_bytes, 256U);
  EXPECT_EQ(ImproveOrder(items, start, 192).peak_bytes, 192U);
}

TEST(ImproveOrderTest, LeavesAStartThatReachesTheGoal) {
  const Packing start = PackAsTheyCome(kOrdered);
  EXPECT_EQ(ImproveOrder(kOrdered, start, start.peak_bytes).offsets, start.offsets);
}

TEST(ImproveOrderTest, IsNeverWorseThanItsStartAndDeterministic) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    std::vector<PackItem> items(10);
    for (PackItem& item : items) {
      item.size_bytes = 64 * (1 + random() % 5);
      item.first = static_cast<uint32_t>(random() % 8);
      item.end = item.first + 1 + static_cast<uint32_t>(random() % 4);
    }
    const Packing start = PackAsTheyCome(items);
    const Packing improved = ImproveOrder(items, start, 0);
    EXPECT_LE(improved.peak_bytes, start.peak_bytes) << "seed " << seed;
    EXPECT_EQ(improved.offsets, ImproveOrder(items, start, 0).offsets) << "seed " << seed;
  }
}

}  // namespace
}  // namespace thimble
