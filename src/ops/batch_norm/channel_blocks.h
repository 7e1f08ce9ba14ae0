// How the batch-norm ops divide a matrix of rows and channels among the blocks and threads of a
// GPU: by shape alone, so that sums are added in the same order on every GPU. Pure functions; a
// test without a GPU checks that every element has exactly one thread.
//
// Channels are cut into groups, rows into chunks; a block works on one group of one chunk. Inside
// it, `columns()` threads stand side by side in a row, each with `vector` channels, and `lanes()`
// rows pass at once. A thread keeps its channels, so their sums and constants stay in its
// registers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace thimble {

// One such block fills a multiprocessor, with 64 registers for each thread.
inline constexpr int kNormThreads = 1024;
// One for each of the 132 multiprocessors of an H100 or H200.
inline constexpr int kNormBlocks = 132;
// A line of memory. Every block of the second pass reads the partial sums of its group: narrow
// groups make that short.
inline constexpr int kMaxGroupChannels = 32;

struct ChannelBlocks {
  int64_t rows;
  int64_t channels;
  int64_t rows_per_chunk;
  int chunks;       // at least one, so that the results of no rows are written
  int groups;       // the last one may have fewer channels
  int vector;       // 4 where C allows it, otherwise 1
  int column_bits;  // columns() is a power of two, so that threads divide by shifting

  constexpr ChannelBlocks(int64_t num_rows, int64_t num_channels)
      : rows(num_rows),
        channels(num_channels),
        vector(num_channels % 4 == 0 ? 4 : 1),
        column_bits(0) {
    while (group_channels() < std::min<int64_t>(channels, kMaxGroupChannels)) ++column_bits;
    groups = static_cast<int>((channels + group_channels() - 1) / group_channels());
    const int64_t max_chunks = std::max(1, kNormBlocks / std::max(1, groups));
    rows_per_chunk = std::max<int64_t>(lanes(), (rows + max_chunks - 1) / max_chunks);
    chunks = static_cast<int>(std::max<int64_t>(1, (rows + rows_per_chunk - 1) / rows_per_chunk));
  }
  constexpr int columns() const { return 1 << column_bits; }
  constexpr int group_channels() const { return vector << column_bits; }
  constexpr int lanes() const { return kNormThreads >> column_bits; }
  // Two partial sums for each chunk and channel: (chunks, 2, C).
  constexpr size_t num_partials() const {
    return 2 * static_cast<size_t>(chunks) * static_cast<size_t>(channels);
  }
};

// The elements of one thread: `vector` channels in some rows of its chunk.
struct ThreadRows {
  int64_t channel;  // the first one; C or more where none is left for the thread
  int place;        // of that channel in the group
  int count;        // rows
  int64_t first;    // index of the first row's element
  int step;         // from the element of a row to that of the thread's next one

  constexpr int64_t Element(int row) const { return first + int64_t{row} * step; }
};

constexpr ThreadRows RowsOfThread(const ChannelBlocks& blocks, int group, int chunk, int thread) {
  const int lane = thread >> blocks.column_bits;
  const int place = (thread & (blocks.columns() - 1)) * blocks.vector;
  const int64_t channel = int64_t{group} * blocks.group_channels() + place;
  const int64_t begin = chunk * blocks.rows_per_chunk + lane;
  const int64_t end = std::min(blocks.rows, (chunk + 1) * blocks.rows_per_chunk);
  const bool idle = channel >= blocks.channels || begin >= end;
  const int count = idle ? 0 : static_cast<int>(end - begin - 1) / blocks.lanes() + 1;
  return {channel, place, count, begin * blocks.channels + channel,
          static_cast<int>(blocks.lanes() * blocks.channels)};
}

}  // namespace thimble
