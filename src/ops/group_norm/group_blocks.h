// How the group-norm ops divide x (B, rows, C) among the blocks and threads of a GPU: by the shape
// of a sample alone, so that its sums are added in the same order on every GPU and in every batch.
// Pure functions; a test that needs no GPU checks that every element has exactly one thread.
//
// A block works on one group of one sample, a *unit*. In a block, `columns` threads share a row,
// each with `vector` channels, and `lanes` rows are processed at once. If a group is wider than
// that, its channels are processed in `rounds`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace thimble {

// Several blocks share a multiprocessor: at batch 100 a network of wrn-28-2's size has 400 units
// and more.
inline constexpr int kGroupThreads = 256;

struct GroupBlocks {
  int64_t samples;
  int64_t rows;  // of a sample
  int64_t channels;
  int64_t groups;
  int vector;     // 4 if the width of a group allows it, otherwise 1
  int64_t packs;  // of `vector` channels, in a group
  int columns;    // at least one
  int lanes;
  int64_t rounds;

  constexpr GroupBlocks(int64_t num_samples, int64_t num_rows, int64_t num_channels,
                        int64_t num_groups)
      : samples(num_samples),
        rows(num_rows),
        channels(num_channels),
        groups(num_groups),
        vector(num_channels / num_groups % 4 == 0 ? 4 : 1),
        packs(num_channels / num_groups / vector),
        columns(static_cast<int>(std::clamp<int64_t>(packs, 1, kGroupThreads))),
        lanes(kGroupThreads / columns),
        rounds((packs + columns - 1) / columns) {}

  constexpr int64_t group_channels() const { return channels / groups; }
  constexpr int64_t units() const { return samples * groups; }
  // The divisor for means over a unit.
  constexpr double count() const {
    return static_cast<double>(std::max<int64_t>(1, rows * group_channels()));
  }
  constexpr bool empty() const { return rows * group_channels() == 0; }
  // Two sums for each channel of each sample: (B, 2, C).
  constexpr size_t num_partials() const { return 2 * static_cast<size_t>(samples * channels); }
};

// The elements of one thread in one round: `vector` channels in every lanes-th row of a sample.
struct GroupThread {
  int64_t channel;  // the first one
  int lane;
  bool idle;      // has no channels
  int64_t count;  // rows
  int64_t first;  // index of the first row's element
  int64_t step;   // distance from an element to the one in the thread's next row

  constexpr GroupThread(const GroupBlocks& blocks, int64_t unit, int64_t round, int thread) {
    const int64_t pack = round * blocks.columns + thread % blocks.columns;
    lane = thread / blocks.columns;
    idle = lane >= blocks.lanes || pack >= blocks.packs;
    channel = unit % blocks.groups * blocks.group_channels() + pack * blocks.vector;
    count = idle || lane >= blocks.rows ? 0 : (blocks.rows - lane - 1) / blocks.lanes + 1;
    first = (unit / blocks.groups * blocks.rows + lane) * blocks.channels + channel;
    step = blocks.lanes * blocks.channels;
  }
  constexpr int64_t Element(int64_t row) const { return first + row * step; }
};

}  // namespace thimble
