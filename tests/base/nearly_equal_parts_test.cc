#include "thimble/base/nearly_equal_parts.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace thimble {
namespace {

std::vector<int64_t> Sizes(const NearlyEqualParts& parts) {
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < parts.parts; ++i) sizes.push_back(parts.Size(i));
  return sizes;
}

using Numbers = std::vector<int64_t>;

TEST(NearlyEqualPartsTest, LargerPartsComeFirst) {
  EXPECT_EQ(Sizes(CutNearlyEqually(7, 3)), (Numbers{3, 2, 2}));
  EXPECT_EQ(Sizes(CutNearlyEqually(10, 4)), (Numbers{4, 3, 3}));
  EXPECT_EQ(Sizes(CutNearlyEqually(100, 30)), (Numbers{25, 25, 25, 25}));
}

TEST(NearlyEqualPartsTest, PartsOfOneAndOnePart) {
  EXPECT_EQ(Sizes(CutNearlyEqually(3, 1)), (Numbers{1, 1, 1}));
  EXPECT_EQ(Sizes(CutNearlyEqually(3, 3)), (Numbers{3}));
}

TEST(NearlyEqualPartsTest, APartMayBeLargerThanAllThereIs) {
  EXPECT_EQ(Sizes(CutNearlyEqually(3, 4)), (Numbers{3}));
  EXPECT_EQ(Sizes(CutNearlyEqually(3, std::numeric_limits<int64_t>::max())), (Numbers{3}));
}

TEST(NearlyEqualPartsTest, OfNothingThereIsOneEmptyPart) {
  EXPECT_EQ(Sizes(CutNearlyEqually(0, 5)), (Numbers{0}));
}

TEST(NearlyEqualPartsTest, SharesAreOfTheWhole) {
  EXPECT_EQ(CutNearlyEqually(8, 5).Share(1), 0.5);
  EXPECT_EQ(CutNearlyEqually(5, 3).Share(1), 0.4);
  EXPECT_EQ(CutNearlyEqually(7, 9).Share(0), 1);
}

// The contract, for all small numbers: the fewest parts, contiguous and nearly equal.
TEST(NearlyEqualPartsTest, EveryIndexLiesInTheRightPart) {
  for (int64_t total = 1; total <= 40; ++total) {
    for (int64_t largest = 1; largest <= total + 1; ++largest) {
      SCOPED_TRACE(testing::Message() << total << " in parts of at most " << largest);
      const NearlyEqualParts parts = CutNearlyEqually(total, largest);
      EXPECT_LE(parts.LargestSize(), largest);
      EXPECT_GT(total, (parts.parts - 1) * largest) << "too many parts";
      int64_t index = 0;
      for (int64_t i = 0; i < parts.parts; ++i) {
        EXPECT_EQ(parts.Begin(i), index);
        EXPECT_GE(parts.Size(i), parts.LargestSize() - 1);
        for (int64_t end = index + parts.Size(i); index < end; ++index) {
          EXPECT_EQ(parts.PartOf(index), i) << index;
        }
      }
      EXPECT_EQ(index, total);
      EXPECT_EQ(parts.Begin(parts.parts), total);
    }
  }
}

TEST(NearlyEqualParts, MayBeMadeEqual) {
  for (int64_t total = 1; total <= 60; ++total) {
    for (int64_t largest = 1; largest <= total + 1; ++largest) {
      const NearlyEqualParts nearly = CutNearlyEqually(total, largest);
      const NearlyEqualParts equal = EqualParts(nearly);
      EXPECT_EQ(equal.Size(0), nearly.LargestSize());
      EXPECT_EQ(equal.Size(equal.parts - 1), equal.Size(0));
      EXPECT_LE(equal.parts, nearly.parts);
      EXPECT_GE(equal.total, total);
      EXPECT_LT(equal.Begin(equal.parts - 1), total) << "no part is empty";
    }
  }
}

}  // namespace
}  // namespace thimble
