// Compares the offset planner with an independent checker, brute force and a simulation. The
// checker itself is tested with planted bad layouts.
#include "thimble/plan/memory/place_intervals.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>

namespace thimble {
namespace {

using Intervals = std::vector<Interval>;

struct RandomShape {
  size_t count = 0;
  size_t steps = 0;
  size_t max_life = 0;
  size_t max_size_bytes = 0;
};

Intervals MakeRandom(std::mt19937& random, const RandomShape& shape) {
  Intervals intervals(shape.count);
  for (Interval& interval : intervals) {
    interval.size_bytes = random() % (shape.max_size_bytes + 1);
    interval.live.first = random() % shape.steps;
    interval.live.end = interval.live.first + 1 + random() % shape.max_life;
  }
  return intervals;
}

// Examines all pairs, with its own definition of overlap: the two share a step and a byte.
std::optional<std::string> FindFault(const Intervals& intervals, const OffsetPlan& plan,
                                     size_t alignment) {
  if (plan.offsets.size() != intervals.size()) return "wrong number of offsets";
  size_t top = 0;
  for (size_t i = 0; i < intervals.size(); ++i) {
    if (plan.offsets[i] % alignment != 0) return fmt::format("{} is not aligned", i);
    if (intervals[i].size_bytes == 0) continue;
    top = std::max(top, plan.offsets[i] + intervals[i].size_bytes);
    for (size_t j = 0; j < i; ++j) {
      if (intervals[j].size_bytes == 0) continue;
      const size_t first = std::max(intervals[i].live.first, intervals[j].live.first);
      const size_t end = std::min(intervals[i].live.end, intervals[j].live.end);
      const size_t low = std::max(plan.offsets[i], plan.offsets[j]);
      const size_t high = std::min(plan.offsets[i] + intervals[i].size_bytes,
                                   plan.offsets[j] + intervals[j].size_bytes);
      if (first < end && low < high) return fmt::format("{} and {} overlap", j, i);
    }
  }
  const size_t rounded_top = (top + alignment - 1) / alignment * alignment;
  if (plan.peak_bytes != rounded_top) {
    return fmt::format("peak {}, the highest end is {}", plan.peak_bytes, rounded_top);
  }
  return std::nullopt;
}

// Bytes alive step by step, each size a multiple of `alignment`.
size_t FullestStep(const Intervals& intervals, size_t alignment) {
  size_t last = 0;
  for (const Interval& interval : intervals) last = std::max(last, interval.live.end);
  size_t fullest = 0;
  for (size_t step = 0; step < last; ++step) {
    size_t alive = 0;
    for (const Interval& interval : intervals) {
      if (step < interval.live.first || step >= interval.live.end) continue;
      alive += (interval.size_bytes + alignment - 1) / alignment * alignment;
    }
    fullest = std::max(fullest, alive);
  }
  return fullest;
}

// Whether interval `i` can be placed at the offset without overlapping those placed so far.
bool IsFree(const Intervals& intervals, size_t i, size_t offset, std::span<const size_t> placed,
            const std::vector<size_t>& offsets) {
  return std::none_of(placed.begin(), placed.end(), [&](size_t other) {
    return intervals[other].size_bytes > 0 && intervals[other].live.first < intervals[i].live.end &&
           intervals[i].live.first < intervals[other].live.end &&
           offsets[other] < offset + intervals[i].size_bytes &&
           offset < offsets[other] + intervals[other].size_bytes;
  });
}

// The smallest possible peak: the lowest free offset for each interval, in every order.
size_t SmallestPeak(const Intervals& intervals) {
  std::vector<size_t> order(intervals.size());
  std::iota(order.begin(), order.end(), 0);
  size_t smallest = SIZE_MAX;
  do {
    std::vector<size_t> offsets(intervals.size());
    size_t peak = 0;
    for (size_t k = 0; k < order.size(); ++k) {
      const size_t i = order[k];
      if (intervals[i].size_bytes == 0) continue;
      while (!IsFree(intervals, i, offsets[i], std::span(order).first(k), offsets)) ++offsets[i];
      peak = std::max(peak, offsets[i] + intervals[i].size_bytes);
    }
    smallest = std::min(smallest, peak);
  } while (std::next_permutation(order.begin(), order.end()));
  return smallest;
}

// Writes each interval's number when it starts and reads it when it ends.
std::optional<std::string> RunInTimeOrder(const Intervals& intervals, const OffsetPlan& plan) {
  std::vector<size_t> arena(plan.peak_bytes, SIZE_MAX);
  size_t last = 0;
  for (const Interval& interval : intervals) last = std::max(last, interval.live.end);
  for (size_t step = 0; step <= last; ++step) {
    for (size_t i = 0; i < intervals.size(); ++i) {
      if (intervals[i].live.end != step) continue;
      for (size_t byte = 0; byte < intervals[i].size_bytes; ++byte) {
        if (arena[plan.offsets[i] + byte] != i) return fmt::format("{} was overwritten", i);
      }
    }
    for (size_t i = 0; i < intervals.size(); ++i) {
      if (intervals[i].live.first != step) continue;
      std::fill_n(arena.begin() + static_cast<ptrdiff_t>(plan.offsets[i]), intervals[i].size_bytes,
                  i);
    }
  }
  return std::nullopt;
}

void ExpectSound(const Intervals& intervals, size_t alignment, const std::string& where) {
  const OffsetPlan plan = PlaceIntervals(intervals, alignment);
  EXPECT_EQ(FindFault(intervals, plan, alignment).value_or(""), "") << where;
  EXPECT_EQ(RunInTimeOrder(intervals, plan).value_or(""), "") << where;
  EXPECT_EQ(plan.lower_bound_bytes, FullestStep(intervals, 1)) << where;
  EXPECT_GE(plan.peak_bytes, FullestStep(intervals, alignment)) << where;
  const OffsetPlan apart = PlaceWithoutSharing(intervals, alignment);
  EXPECT_EQ(FindFault(intervals, apart, alignment).value_or(""), "") << where;
  EXPECT_LE(plan.peak_bytes, apart.peak_bytes) << where;
}

TEST(PlaceIntervalsTest, RandomCasesAreSound) {
  const RandomShape shapes[] = {{1, 3, 3, 100},   {3, 4, 3, 200},    {8, 6, 4, 500},
                                {8, 30, 2, 500},  {20, 20, 20, 300}, {20, 5, 5, 100},
                                {40, 40, 8, 1000}};
  for (const RandomShape& shape : shapes) {
    const uint32_t num_seeds = shape.count <= 8 ? 1500 : 60;
    for (uint32_t seed = 0; seed < num_seeds; ++seed) {
      std::mt19937 random(seed);
      const size_t alignment = size_t{1} << (seed % 7);
      ExpectSound(MakeRandom(random, shape), alignment,
                  fmt::format("count {} seed {}", shape.count, seed));
    }
  }
}

TEST(PlaceIntervalsTest, LargerCasesAreSound) {
  for (uint32_t seed = 0; seed < 3; ++seed) {
    std::mt19937 random(seed);
    ExpectSound(MakeRandom(random, {300, 200, 40, 2000}), 64, fmt::format("seed {}", seed));
  }
}

TEST(PlaceIntervalsTest, TinyCasesReachTheSmallestPeak) {
  for (uint32_t seed = 0; seed < 4000; ++seed) {
    std::mt19937 random(seed);
    const size_t steps = 2 + seed % 7;
    const Intervals intervals = MakeRandom(random, {2 + seed % 5, steps, 1 + seed % 4, 12});
    EXPECT_EQ(PlaceIntervals(intervals, 1).peak_bytes, SmallestPeak(intervals)) << "seed " << seed;
  }
}

TEST(PlaceIntervalsTest, EightIntervalsReachTheBoundOrTheSmallestPeak) {
  // A peak at the bound needs no brute force. About one case in thousands needs the local search.
  for (uint32_t seed = 0; seed < 12000; ++seed) {
    std::mt19937 random(seed);
    const Intervals intervals = MakeRandom(random, {8, 7, 6, 9});
    const OffsetPlan plan = PlaceIntervals(intervals, 1);
    if (plan.peak_bytes == plan.lower_bound_bytes) continue;
    EXPECT_EQ(plan.peak_bytes, SmallestPeak(intervals)) << "seed " << seed;
  }
}

TEST(PlaceIntervalsTest, MirroredLivesReachTheBound) {
  // Forward values end in the opposite order of their start, each backward step has a gradient.
  Intervals intervals;
  const size_t layers = 40;
  for (size_t layer = 0; layer < layers; ++layer) {
    const size_t backward = 2 * layers - layer;
    intervals.push_back({1000 * (1 + layer % 5), {layer, backward}});
    intervals.push_back({1000 * (1 + layer % 5), {backward - 1, backward + 1}});
  }
  EXPECT_EQ(PlaceIntervals(intervals, 64).peak_bytes, FullestStep(intervals, 64));
}

TEST(PlaceIntervalsTest, NothingAndZeroSizesTakeNothing) {
  EXPECT_EQ(PlaceIntervals({}, 64).peak_bytes, 0U);
  EXPECT_EQ(LowerBoundBytes({}), 0U);
  const Intervals zeros = {{0, {0, 5}}, {0, {2, 3}}};
  EXPECT_EQ(PlaceIntervals(zeros, 64).peak_bytes, 0U);
  const Intervals mixed = {{0, {0, 5}}, {100, {0, 5}}, {0, {1, 2}}, {10, {4, 5}}};
  const OffsetPlan plan = PlaceIntervals(mixed, 64);
  EXPECT_EQ(plan.offsets[0], 0U);
  EXPECT_EQ(plan.offsets[2], 0U);
  EXPECT_EQ(plan.peak_bytes, 192U);
  EXPECT_EQ(plan.lower_bound_bytes, 110U);
  EXPECT_EQ(PlaceWithoutSharing(mixed, 64).peak_bytes, 192U);
}

TEST(PlaceIntervalsTest, NeighboursInTimeShareBytes) {
  const Intervals intervals = {{64, {0, 1}}, {64, {1, 2}}, {64, {2, 3}}};
  EXPECT_EQ(PlaceIntervals(intervals, 64).peak_bytes, 64U);
  EXPECT_EQ(PlaceWithoutSharing(intervals, 64).peak_bytes, 192U);
}

TEST(PlaceIntervalsTest, SameInputGivesSameOffsets) {
  std::mt19937 random(7);
  const Intervals intervals = MakeRandom(random, {200, 60, 30, 5000});
  EXPECT_EQ(PlaceIntervals(intervals, 64).offsets, PlaceIntervals(intervals, 64).offsets);
}

TEST(PlaceIntervalsDeathTest, RejectsAnAlignmentThatIsNoPowerOfTwo) {
  const Intervals intervals = {{64, {0, 1}}};
  EXPECT_DEATH(PlaceIntervals(intervals, 48), "alignment 48");
  EXPECT_DEATH(PlaceIntervals(intervals, 0), "alignment 0");
}

TEST(PlaceIntervalsTest, WorkIsBounded) {
  // About 0.2 s on an idle core; the limit allows for slow or busy machines and sanitizers.
  std::mt19937 random(1);
  const Intervals intervals = MakeRandom(random, {2000, 1000, 300, 100000});
  const auto begin = std::chrono::steady_clock::now();
  const OffsetPlan plan = PlaceIntervals(intervals, 64);
  const auto end = std::chrono::steady_clock::now();
  EXPECT_LT(std::chrono::duration<double>(end - begin).count(), 20.0);
  EXPECT_EQ(FindFault(intervals, plan, 64).value_or(""), "");
  EXPECT_LE(static_cast<double>(plan.peak_bytes),
            1.15 * static_cast<double>(plan.lower_bound_bytes));
}

// The checks above must be able to fail.
class PlantedFaultTest : public ::testing::Test {
 protected:
  const Intervals intervals_ = {{100, {0, 4}}, {100, {2, 6}}, {100, {5, 8}}, {64, {3, 4}}};
  const OffsetPlan good_ = {{0, 128, 0, 256}, 320, 264};
};

TEST_F(PlantedFaultTest, GoodLayoutPasses) {
  EXPECT_EQ(FindFault(intervals_, good_, 64), std::nullopt);
  EXPECT_EQ(RunInTimeOrder(intervals_, good_), std::nullopt);
}

TEST_F(PlantedFaultTest, OverlapIsFound) {
  OffsetPlan bad = good_;
  bad.offsets[1] = 64;
  EXPECT_EQ(FindFault(intervals_, bad, 64), "0 and 1 overlap");
  EXPECT_NE(RunInTimeOrder(intervals_, bad), std::nullopt);
}

TEST_F(PlantedFaultTest, OneInsideAnotherIsFound) {
  OffsetPlan bad = good_;
  bad.offsets[3] = 0;
  bad.peak_bytes = 256;
  EXPECT_EQ(FindFault(intervals_, bad, 64), "0 and 3 overlap");
  EXPECT_NE(RunInTimeOrder(intervals_, bad), std::nullopt);
}

TEST_F(PlantedFaultTest, OffAlignmentIsFound) {
  OffsetPlan bad = good_;
  bad.offsets[2] = 8;
  EXPECT_EQ(FindFault(intervals_, bad, 64), "2 is not aligned");
}

TEST_F(PlantedFaultTest, WrongPeakIsFound) {
  OffsetPlan bad = good_;
  bad.peak_bytes = 256;
  EXPECT_EQ(FindFault(intervals_, bad, 64), "peak 256, the highest end is 320");
}

TEST_F(PlantedFaultTest, MissingOffsetIsFound) {
  OffsetPlan bad = good_;
  bad.offsets.pop_back();
  EXPECT_EQ(FindFault(intervals_, bad, 64), "wrong number of offsets");
}

}  // namespace
}  // namespace thimble
