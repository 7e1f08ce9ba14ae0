#include "thimble/ops/batch_norm/channel_blocks.h"

#include <gtest/gtest.h>

#include <vector>

namespace thimble {
namespace {

// How many threads work on each element; an index outside fails.
std::vector<int> CountThreads(const ChannelBlocks& blocks) {
  std::vector<int> threads(static_cast<size_t>(blocks.rows * blocks.channels), 0);
  for (int block = 0; block < blocks.groups * blocks.chunks; ++block) {
    for (int thread = 0; thread < kNormThreads; ++thread) {
      const ThreadRows rows =
          RowsOfThread(blocks, block % blocks.groups, block / blocks.groups, thread);
      for (int row = 0; row < rows.count; ++row) {
        for (int v = 0; v < blocks.vector; ++v) {
          ++threads.at(static_cast<size_t>(rows.Element(row) + v));
        }
        EXPECT_EQ(rows.Element(row) % blocks.channels, rows.channel);
      }
      EXPECT_LE(rows.place + blocks.vector, kMaxGroupChannels);
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

TEST(ChannelBlocks, FillTheGpuWithTheLayersOfAWideResNet) {
  const int64_t layers[][2] = {{102400, 16}, {102400, 32}, {25600, 64}, {6400, 128}};
  for (const auto& [rows, channels] : layers) {
    const ChannelBlocks blocks(rows, channels);
    EXPECT_EQ(blocks.vector, 4);
    EXPECT_LE(blocks.groups * blocks.chunks, kNormBlocks);
    EXPECT_GE(blocks.groups * blocks.chunks, kNormBlocks * 3 / 4) << channels;
    // Scratch: 68 kB, whatever the shape.
    EXPECT_LE(blocks.num_partials(), 2 * kNormBlocks * kMaxGroupChannels);
  }
}

TEST(ChannelBlocks, NoRowsHaveOneChunk) {
  const ChannelBlocks blocks(0, 3);
  EXPECT_EQ(blocks.chunks, 1);
  EXPECT_EQ(RowsOfThread(blocks, 0, 0, 0).count, 0);
}

TEST(ChannelBlocks, NoChannelsHaveNoBlocks) {
  const ChannelBlocks blocks(0, 0);
  EXPECT_EQ(blocks.groups, 0);
  EXPECT_EQ(blocks.num_partials(), 0);
}

}  // namespace
}  // namespace thimble
