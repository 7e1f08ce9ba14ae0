#include "thimble/ops/group_norm/group_blocks.h"

#include <gtest/gtest.h>

#include <vector>

namespace thimble {
namespace {

// The number of threads that process each element; an index out of range fails.
std::vector<int> CountThreads(const GroupBlocks& blocks) {
  std::vector<int> threads(static_cast<size_t>(blocks.samples * blocks.rows * blocks.channels), 0);
  for (int64_t unit = 0; unit < blocks.units(); ++unit) {
    for (int64_t round = 0; round < blocks.rounds; ++round) {
      for (int t = 0; t < kGroupThreads; ++t) {
        const GroupThread thread(blocks, unit, round, t);
        for (int64_t row = 0; row < thread.count; ++row) {
          for (int v = 0; v < blocks.vector; ++v) {
            ++threads.at(static_cast<size_t>(thread.Element(row) + v));
          }
          EXPECT_EQ(thread.Element(row) % blocks.channels, thread.channel);
          EXPECT_EQ(thread.channel / blocks.group_channels(), unit % blocks.groups);
        }
      }
    }
  }
  return threads;
}

TEST(GroupBlocks, EachElementHasOneThread) {
  const int64_t cases[][2] = {{1, 1},  {2, 1},  {7, 7},     {8, 2},    {12, 4},   {16, 2},
                              {33, 3}, {64, 8}, {300, 100}, {1030, 2}, {1100, 1}, {8192, 2}};
  for (const auto& [channels, groups] : cases) {
    for (int64_t rows : {1, 2, 5, 31, 128, 129, 700}) {
      const auto threads = CountThreads({2, rows, channels, groups});
      EXPECT_EQ(threads, std::vector<int>(threads.size(), 1))
          << rows << " x " << channels << " in " << groups;
    }
  }
}

TEST(GroupBlocks, EachChannelOfAUnitHasOneThreadInLaneZero) {
  // It stores the sums of its channels, even if there are no rows.
  for (int64_t rows : {0, 1, 40}) {
    const GroupBlocks blocks(1, rows, 4120, 2);
    std::vector<int> threads(4120, 0);
    for (int64_t unit = 0; unit < blocks.units(); ++unit) {
      for (int64_t round = 0; round < blocks.rounds; ++round) {
        for (int t = 0; t < kGroupThreads; ++t) {
          const GroupThread thread(blocks, unit, round, t);
          if (thread.idle || thread.lane != 0) continue;
          for (int v = 0; v < blocks.vector; ++v) {
            ++threads.at(static_cast<size_t>(thread.channel + v));
          }
        }
      }
    }
    EXPECT_EQ(threads, std::vector<int>(4120, 1)) << rows << " rows";
  }
}

TEST(GroupBlocks, ASampleIsCutTheSameWayInEveryBatch) {
  const GroupBlocks one(1, 1024, 32, 4);
  const GroupBlocks many(100, 1024, 32, 4);
  EXPECT_EQ(one.lanes, many.lanes);
  EXPECT_EQ(one.columns, many.columns);
  const GroupThread alone(one, 3, 0, 77);
  const GroupThread among(many, 4 * 60 + 3, 0, 77);
  EXPECT_EQ(among.count, alone.count);
  EXPECT_EQ(among.first, alone.first + 60 * 1024 * 32);
}

TEST(GroupBlocks, NothingIsReadWhereThereIsNothing) {
  for (const GroupBlocks& blocks : {GroupBlocks(2, 0, 4, 2), GroupBlocks(2, 3, 0, 1)}) {
    EXPECT_TRUE(blocks.empty());
    EXPECT_EQ(blocks.count(), 1);
    EXPECT_EQ(GroupThread(blocks, 1, 0, 0).count, 0);
  }
}

}  // namespace
}  // namespace thimble
