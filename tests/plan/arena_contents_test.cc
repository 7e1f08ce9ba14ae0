#include "thimble/plan/arena_contents.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace thimble {
namespace {

TEST(ArenaContentsTest, WritingReplacesWhatItOverlaps) {
  ArenaContents contents;
  contents.Write({0, 100}, {ValueId(1), 0});
  contents.Write({40, 60}, {ValueId(2), 3});
  EXPECT_FALSE(contents.FirstOther({0, 40}, ValueId(1)));
  EXPECT_FALSE(contents.FirstOther({60, 100}, ValueId(1)));
  EXPECT_FALSE(contents.FirstOther({40, 60}, ValueId(2)));
  const auto other = contents.FirstOther({0, 100}, ValueId(1));
  ASSERT_TRUE(other);
  EXPECT_EQ(other->range, (ByteRange{40, 60}));
  EXPECT_EQ(other->holding, (ArenaContents::Holding{ValueId(2), 3}));
}

TEST(ArenaContentsTest, UnwrittenBytesAreFound) {
  ArenaContents contents;
  contents.Write({64, 128}, {ValueId(1), 0});
  const auto before = contents.FirstOther({0, 128}, ValueId(1));
  ASSERT_TRUE(before);
  EXPECT_EQ(before->range, (ByteRange{0, 64}));
  EXPECT_FALSE(before->holding);
  const auto behind = contents.FirstOther({64, 192}, ValueId(1));
  ASSERT_TRUE(behind);
  EXPECT_EQ(behind->range, (ByteRange{128, 192}));
  EXPECT_FALSE(behind->holding);
}

TEST(ArenaContentsTest, EmptyRangesHoldAndNeedNothing) {
  ArenaContents contents;
  contents.Write({64, 64}, {ValueId(1), 0});
  EXPECT_FALSE(contents.FirstHeld({0, 1000}));
  EXPECT_FALSE(contents.FirstOther({64, 64}, ValueId(1)));
  contents.Write({0, 100}, {ValueId(1), 0});
  EXPECT_FALSE(contents.FirstHeld({50, 50}));
  EXPECT_FALSE((ByteRange{50, 50}).Overlaps({0, 100}));
}

TEST(ArenaContentsTest, AgreesWithAnArrayOfBytes) {
  constexpr size_t kBytes = 40;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    ArenaContents contents;
    std::vector<size_t> bytes(kBytes, 0);  // 0: nothing
    for (size_t step = 0; step < 30; ++step) {
      const size_t begin = random() % kBytes;
      const ByteRange range{begin, begin + random() % (kBytes - begin + 1)};
      const size_t value = 1 + random() % 3;
      size_t other = range.begin;
      while (other < range.end && bytes[other] == value) ++other;
      const auto first_other = contents.FirstOther(range, ValueId(value));
      EXPECT_EQ(first_other ? first_other->range.begin : range.end, other);
      size_t held = range.begin;
      while (held < range.end && bytes[held] == 0) ++held;
      const auto first_held = contents.FirstHeld(range);
      EXPECT_EQ(first_held ? first_held->range.begin : range.end, held);
      contents.Write(range, {ValueId(value), step});
      for (size_t byte = range.begin; byte < range.end; ++byte) bytes[byte] = value;
    }
  }
}

}  // namespace
}  // namespace thimble
