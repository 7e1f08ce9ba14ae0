#include "thimble/plan/memory/pack_items.h"

#include <gtest/gtest.h>

namespace thimble {
namespace {

// In time: 0 and 2 at moment 0, 1 and 3 at moment 1, 4 throughout.
const std::vector<PackItem> kPacked = {
    {64, 0, 1}, {128, 1, 2}, {192, 0, 1}, {64, 1, 2}, {64, 0, 2}};

TEST(PackItemsTest, LowestTakesTheFirstPlaceThatIsFree) {
  Packing packing;
  const std::vector<uint32_t> order = {2, 4, 3, 1, 0};
  EXPECT_TRUE(ItemPacker(kPacked).Pack(order, Fit::kLowest, kNoLimit, packing));
  EXPECT_EQ(packing.offsets, (std::vector<size_t>{256, 64, 0, 0, 192}));
  EXPECT_EQ(packing.peak_bytes, 320U);
}

TEST(PackItemsTest, TightestPrefersTheSmallestHole) {
  // Holes under item 4 at moment 1: 192 bytes at 0, and 64 bytes at 256 below another item.
  const std::vector<PackItem> items = {{192, 0, 1}, {64, 0, 2}, {64, 0, 1}, {64, 0, 2}, {64, 1, 2}};
  Packing packing;
  const std::vector<uint32_t> order = {0, 1, 2, 3, 4};
  ItemPacker packer(items);
  EXPECT_TRUE(packer.Pack(order, Fit::kTightest, kNoLimit, packing));
  EXPECT_EQ(packing.offsets[4], 256U);
  EXPECT_TRUE(packer.Pack(order, Fit::kLowest, kNoLimit, packing));
  EXPECT_EQ(packing.offsets[4], 0U);
}

TEST(PackItemsTest, StopsAboveTheLimit) {
  Packing packing;
  const std::vector<uint32_t> order = {0, 1, 2, 3, 4};
  ItemPacker packer(kPacked);
  ASSERT_TRUE(packer.Pack(order, Fit::kLowest, kNoLimit, packing));
  const size_t peak_bytes = packing.peak_bytes;
  EXPECT_TRUE(packer.Pack(order, Fit::kLowest, peak_bytes, packing));
  EXPECT_FALSE(packer.Pack(order, Fit::kLowest, peak_bytes - 1, packing));
}

}  // namespace
}  // namespace thimble
