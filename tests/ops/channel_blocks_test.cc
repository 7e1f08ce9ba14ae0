#include "thimble/ops/batch_norm/channel_blocks.h"

#include <gtest/gtest.h>

#include <vector>

namespace thimble {
namespace {

// Counts the elements of a thread, which must be in its part and channels.
void CountElements(const ChannelBlocks& blocks, int part, const ThreadRows& rows,
                   std::vector<int>& threads) {
  for (int row = 0; row < rows.count; ++row) {
    for (int v = 0; v < blocks.vector; ++v) {
      ++threads.at(static_cast<size_t>(rows.Element(row) + v));
    }
    EXPECT_EQ(rows.Element(row) % blocks.channels, rows.channel);
    EXPECT_GE(rows.Element(row) / blocks.channels, blocks.FirstRow(part));
    EXPECT_LT(rows.Element(row) / blocks.channels, blocks.FirstRow(part + 1));
  }
  EXPECT_LE(rows.place + blocks.vector, kMaxGroupChannels);
}

// The number of threads that process each element; an index out of range fails.
std::vector<int> CountThreads(const ChannelBlocks& blocks) {
  std::vector<int> threads(static_cast<size_t>(blocks.rows * blocks.channels), 0);
  for (int part = 0; part < blocks.parts; ++part) {
    for (int block = 0; block < blocks.groups * blocks.chunks; ++block) {
      for (int thread = 0; thread < kNormThreads; ++thread) {
        CountElements(
            blocks, part,
            RowsOfThread(blocks, part, block % blocks.groups, block / blocks.groups, thread),
            threads);
      }
    }
  }
  return threads;
}

TEST(ChannelBlocks, EachElementHasOneThread) {
  for (int64_t channels : {1, 2, 3, 4, 7, 8, 12, 16, 17, 20, 32, 33, 64, 128, 300, 1030, 5000}) {
    for (int64_t rows : {1, 2, 5, 31, 128, 129, 700}) {
      const ChannelBlocks blocks(rows, channels);
      const auto threads = CountThreads(blocks);
      EXPECT_EQ(threads, std::vector<int>(threads.size(), 1)) << rows << " x " << channels;
    }
  }
  const auto threads = CountThreads({20001, 16});
  EXPECT_EQ(threads, std::vector<int>(threads.size(), 1));
}

TEST(ChannelBlocks, EachElementOfEachPartHasOneThread) {
  for (int64_t channels : {1, 4, 33, 128}) {
    for (int64_t sample_rows : {1, 5, 64, 300}) {
      for (int64_t group : {1, 3, 7, 9}) {
        const ChannelBlocks blocks(sample_rows, channels, CutNearlyEqually(7, group));
        EXPECT_EQ(blocks.FirstRow(blocks.parts), blocks.rows);
        const auto threads = CountThreads(blocks);
        EXPECT_EQ(threads, std::vector<int>(threads.size(), 1))
            << sample_rows << " x " << channels << ", groups of " << group;
      }
    }
  }
}

TEST(ChannelBlocks, OnePartIsCutAsRowsAre) {
  const ChannelBlocks part(1024, 32, CutNearlyEqually(100, 100));
  const ChannelBlocks rows(102400, 32);
  EXPECT_EQ(part.rows_per_chunk, rows.rows_per_chunk);
  EXPECT_EQ(part.chunks, rows.chunks);
}

// The work of the slowest multiprocessor, in rows of a thread.
int64_t RowsOfSlowest(const ChannelBlocks& blocks) {
  const int64_t rounds = (blocks.groups * blocks.parts * blocks.chunks - 1) / kNormBlocks + 1;
  return rounds * ((blocks.rows_per_chunk - 1) / blocks.lanes() + 1);
}

TEST(ChannelBlocks, PartsKeepTheGpuAsBusyAsOne) {
  const int64_t layers[][2] = {{1024, 16}, {1024, 32}, {256, 64}, {64, 128}};
  for (const auto& [sample_rows, channels] : layers) {
    const int64_t plain = RowsOfSlowest({100 * sample_rows, channels});
    for (int64_t group : {50, 20, 10, 5, 2}) {
      const ChannelBlocks blocks(sample_rows, channels, CutNearlyEqually(100, group));
      EXPECT_LE(RowsOfSlowest(blocks), plain + 1) << channels << " channels, groups of " << group;
    }
  }
}

TEST(ChannelBlocks, FillTheGpuWithTheLayersOfAWideResNet) {
  const int64_t layers[][2] = {{102400, 16}, {102400, 32}, {25600, 64}, {6400, 128}};
  for (const auto& [rows, channels] : layers) {
    const ChannelBlocks blocks(rows, channels);
    EXPECT_EQ(blocks.vector, 4);
    EXPECT_LE(blocks.groups * blocks.chunks, kNormBlocks);
    EXPECT_GE(blocks.groups * blocks.chunks, kNormBlocks * 3 / 4) << channels;
    // Scratch: at most 68 kB for any shape.
    EXPECT_LE(blocks.num_partials(), 2 * kNormBlocks * kMaxGroupChannels);
  }
}

TEST(ChannelBlocks, NoRowsHaveOneChunk) {
  const ChannelBlocks blocks(0, 3);
  EXPECT_EQ(blocks.chunks, 1);
  EXPECT_EQ(RowsOfThread(blocks, 0, 0, 0, 0).count, 0);
}

TEST(ChannelBlocks, NoChannelsHaveNoBlocks) {
  const ChannelBlocks blocks(0, 0);
  EXPECT_EQ(blocks.groups, 0);
  EXPECT_EQ(blocks.num_partials(), 0);
}

}  // namespace
}  // namespace thimble
