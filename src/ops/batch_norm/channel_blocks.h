// How the batch-norm ops divide a matrix of rows and channels among the blocks and threads of a
// GPU: by shape alone, so that sums are added in the same order on every GPU. Pure functions; a
// test that needs no GPU checks that every element has exactly one thread.
//
// Rows are divided into parts with their own statistics: one part, or several for ghost batch norm.
// Channels are divided into groups, the rows of a part into chunks; a block works on one group of
// one chunk. In a block, `columns()` threads share a row, each with `vector` channels, and
// `lanes()` rows are processed at once. A thread keeps its channels, so their sums and constants
// stay in its registers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "thimble/base/nearly_equal_parts.h"

namespace thimble {

// One block of this size fills a multiprocessor, with 64 registers per thread.
inline constexpr int kNormThreads = 1024;
// One block for each of the 132 multiprocessors of an H100 or H200.
inline constexpr int kNormBlocks = 132;
// One cache line. Every block of the second pass reads the partial sums of its group, so groups
// should be narrow.
inline constexpr int kMaxGroupChannels = 32;
// Parts are the third dimension of a grid, which is limited to 65,535; one layer of blocks adds
// them up.
inline constexpr int64_t kMaxNormParts = 65534;

struct ChannelBlocks {
  int64_t rows;  // of all parts
  int64_t channels;
  int64_t rows_per_chunk;
  int64_t smaller_rows;  // of a smaller part
  int64_t sample_rows;   // additional rows of the first `larger_parts` parts
  int parts;
  int larger_parts;
  int chunks;       // per part; at least one, so that results are written even without rows
  int groups;       // the last one may have fewer channels
  int vector;       // 4 if C allows it, otherwise 1
  int column_bits;  // columns() is a power of two, so that threads divide by shifting

  // One part.
  constexpr ChannelBlocks(int64_t num_rows, int64_t num_channels)
      : ChannelBlocks(1, num_channels, {num_rows, 1}) {}
  // Parts of samples with `rows_per_sample` rows each. Requires at most kMaxNormParts parts.
  constexpr ChannelBlocks(int64_t rows_per_sample, int64_t num_channels,
                          const NearlyEqualParts& samples)
      : rows(rows_per_sample * samples.total),
        channels(num_channels),
        smaller_rows(rows_per_sample * samples.Size(samples.parts - 1)),
        sample_rows(rows_per_sample),
        parts(static_cast<int>(samples.parts)),
        larger_parts(static_cast<int>(samples.total % samples.parts)),
        vector(num_channels % 4 == 0 ? 4 : 1),
        column_bits(0) {
    while (group_channels() < std::min<int64_t>(channels, kMaxGroupChannels)) ++column_bits;
    groups = static_cast<int>((channels + group_channels() - 1) / group_channels());
    Cut(std::max(1, kNormBlocks / std::max(1, groups)));
    if (parts > 1) CutForParts();
  }
  constexpr int columns() const { return 1 << column_bits; }
  constexpr int group_channels() const { return vector << column_bits; }
  constexpr int lanes() const { return kNormThreads >> column_bits; }
  // Rows of the first part, which is the largest.
  constexpr int64_t most_rows() const { return PartRows(0); }
  constexpr int64_t PartRows(int part) const {
    return smaller_rows + (part < larger_parts ? sample_rows : 0);
  }
  constexpr int64_t FirstRow(int part) const {
    return part * smaller_rows + std::min(part, larger_parts) * sample_rows;
  }
  // Mean and variance: (parts, C).
  constexpr size_t num_statistics() const {
    return static_cast<size_t>(parts) * static_cast<size_t>(channels);
  }
  // Two partial sums for each chunk and channel: (parts, chunks, 2, C).
  constexpr size_t num_partials() const {
    return 2 * static_cast<size_t>(chunks) * num_statistics();
  }

 private:
  // Divides parts into at most `max_chunks` chunks with at least one row per lane.
  constexpr void Cut(int max_chunks) {
    rows_per_chunk = std::max<int64_t>(lanes(), (most_rows() + max_chunks - 1) / max_chunks);
    chunks =
        static_cast<int>(std::max<int64_t>(1, (most_rows() + rows_per_chunk - 1) / rows_per_chunk));
  }
  // Chooses the number of chunks with the shortest estimated time: kNormBlocks blocks run at a
  // time, each for as long as its threads have rows, plus a fixed overhead counted in rows.
  constexpr void CutForParts() {
    const int most_chunks = chunks;
    int best = 1;
    int64_t best_time = TimeOf(1);
    for (int candidate = 2; candidate <= most_chunks; ++candidate) {
      const int64_t time = TimeOf(candidate);
      if (time < best_time) {
        best = candidate;
        best_time = time;
      }
    }
    Cut(best);
  }
  constexpr int64_t TimeOf(int candidate) {
    // The overhead, about two microseconds: loading constants, adding up sums.
    constexpr int64_t kRowsToBegin = 3;
    Cut(candidate);
    const int64_t blocks = groups * (int64_t{parts} * chunks + 1);
    const int64_t rounds = (blocks + kNormBlocks - 1) / kNormBlocks;
    return rounds * ((rows_per_chunk + lanes() - 1) / lanes() + kRowsToBegin);
  }
};

// The elements of one thread: `vector` channels in some rows of its chunk.
struct ThreadRows {
  int64_t channel;  // the first one; C or more if the thread has none
  int place;        // index of that channel in the group
  int count;        // rows
  int64_t first;    // index of the first row's element
  int step;         // distance from an element to the one in the thread's next row

  constexpr int64_t Element(int row) const { return first + int64_t{row} * step; }
};

constexpr ThreadRows RowsOfThread(const ChannelBlocks& blocks, int part, int group, int chunk,
                                  int thread) {
  const int lane = thread >> blocks.column_bits;
  const int place = (thread & (blocks.columns() - 1)) * blocks.vector;
  const int64_t channel = int64_t{group} * blocks.group_channels() + place;
  const int64_t begin = chunk * blocks.rows_per_chunk + lane;
  const int64_t end = std::min(blocks.PartRows(part), (chunk + 1) * blocks.rows_per_chunk);
  const bool idle = channel >= blocks.channels || begin >= end;
  const int count = idle ? 0 : static_cast<int>(end - begin - 1) / blocks.lanes() + 1;
  return {channel, place, count, (blocks.FirstRow(part) + begin) * blocks.channels + channel,
          static_cast<int>(blocks.lanes() * blocks.channels)};
}

}  // namespace thimble
