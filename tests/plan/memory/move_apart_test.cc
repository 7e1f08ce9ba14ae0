#include "thimble/plan/memory/move_apart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace thimble {
namespace {

using testing::ElementsAre;

constexpr size_t kAlignment = 64;

TEST(MoveApart, ToWhereNobodyWas) {
  // The third reuses the bytes of the first immediately; the second ended long before.
  const std::vector<Interval> intervals = {{64, {4, 6}}, {64, {0, 1}}, {64, {6, 8}}};
  EXPECT_EQ(MissingRest(intervals, std::vector<size_t>{0, 64, 0}, 4), 4U);
  // The first moves there, and the second away from it.
  EXPECT_THAT(MoveApart(intervals, {0, 64, 0}, kAlignment, 4), ElementsAre(64, 0, 0));
  EXPECT_EQ(MissingRest(intervals, std::vector<size_t>{64, 0, 0}, 4), 0U);
}

TEST(MoveApart, StaysWhereNothingIsBetter) {
  const std::vector<Interval> intervals = {{64, {0, 2}}, {64, {2, 4}}, {64, {4, 6}}};
  EXPECT_THAT(MoveApart(intervals, {0, 0, 0}, kAlignment, 4), ElementsAre(0, 0, 0));
  EXPECT_THAT(MoveApart(intervals, {0, 64, 128}, kAlignment, 4), ElementsAre(0, 64, 128));
  EXPECT_THAT(MoveApart(intervals, {0, 64, 0}, kAlignment, 0), ElementsAre(0, 64, 0));
}

TEST(MoveApart, ForRestBeforeAsWellAsAfter) {
  // Between the other two there is free space above.
  const std::vector<Interval> intervals = {{64, {0, 2}}, {64, {2, 4}}, {128, {8, 9}}};
  EXPECT_THAT(MoveApart(intervals, {0, 0, 0}, kAlignment, 3), ElementsAre(64, 0, 0));
}

TEST(MoveApart, NotAcrossWhatLives) {
  // The hole at 64 is too small for the third, the peak may not grow.
  const std::vector<Interval> intervals = {
      {128, {0, 2}}, {64, {0, 9}}, {128, {2, 4}}, {64, {0, 9}}};
  EXPECT_THAT(MoveApart(intervals, {0, 192, 0, 256}, kAlignment, 4), ElementsAre(0, 192, 0, 256));
}

TEST(MoveApart, WhatIsEmptyCountsForNothing) {
  EXPECT_TRUE(MoveApart({}, {}, kAlignment, 4).empty());
  const std::vector<Interval> intervals = {{0, {0, 9}}, {64, {0, 1}}, {64, {1, 2}}, {128, {5, 6}}};
  EXPECT_THAT(MoveApart(intervals, {0, 0, 0, 0}, kAlignment, 3), ElementsAre(0, 64, 0, 0));
}

TEST(MoveApart, RandomPlacementsStayValidAndNoHigher) {
  std::mt19937 random(5);
  size_t before = 0;
  size_t after = 0;
  for (int round = 0; round < 100; ++round) {
    std::vector<Interval> intervals(40);
    for (Interval& interval : intervals) {
      interval.size_bytes = random() % 1500;
      interval.live.first = random() % 40;
      interval.live.end = interval.live.first + 1 + random() % 8;
    }
    const OffsetPlan placed = PlaceIntervals(intervals, kAlignment);
    const auto offsets = MoveApart(intervals, placed.offsets, kAlignment, 4);
    for (size_t i = 0; i < intervals.size(); ++i) {
      EXPECT_EQ(offsets[i] % kAlignment, 0U);
      if (intervals[i].size_bytes == 0) continue;
      EXPECT_LE(offsets[i] + intervals[i].size_bytes, placed.peak_bytes);
      for (size_t j = 0; j < i; ++j) {
        const bool share = offsets[i] < offsets[j] + intervals[j].size_bytes &&
                           offsets[j] < offsets[i] + intervals[i].size_bytes;
        EXPECT_FALSE(share && intervals[i].live.Overlaps(intervals[j].live)) << i << " " << j;
      }
    }
    const size_t had = MissingRest(intervals, placed.offsets, 4);
    EXPECT_LE(MissingRest(intervals, offsets, 4), had);
    before += had;
    after += MissingRest(intervals, offsets, 4);
  }
  EXPECT_LT(after, before * 3 / 4);
}

}  // namespace
}  // namespace thimble
