#include "thimble/plan/memory/place_intervals.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "thimble/base/byte_size.h"
#include "thimble/base/check.h"
#include "thimble/plan/memory/improve_order.h"
#include "thimble/plan/memory/pack_items.h"
#include "thimble/plan/memory/skyline_order.h"

namespace thimble {
namespace {

// The intervals that are not empty, prepared for packing.
struct PackTask {
  std::vector<PackItem> items;
  std::vector<size_t> sources;  // by item: the interval
  std::vector<size_t> loads;    // bytes alive between moment i and i + 1
};

PackTask MakeTask(std::span<const Interval> intervals, size_t alignment) {
  PackTask task;
  std::vector<size_t> moments;
  for (const Interval& interval : intervals) {
    moments.push_back(interval.live.first);
    moments.push_back(interval.live.end);
  }
  std::sort(moments.begin(), moments.end());
  moments.erase(std::unique(moments.begin(), moments.end()), moments.end());
  const auto number = [&](size_t moment) {
    return static_cast<uint32_t>(std::lower_bound(moments.begin(), moments.end(), moment) -
                                 moments.begin());
  };
  task.loads.assign(moments.size(), 0);
  for (size_t i = 0; i < intervals.size(); ++i) {
    if (intervals[i].size_bytes == 0) continue;
    const PackItem item{RoundUp(intervals[i].size_bytes, alignment),
                        number(intervals[i].live.first), number(intervals[i].live.end)};
    // Differences; their prefix sums are the loads. Unsigned wrap-around cancels.
    task.loads[item.first] += item.size_bytes;
    task.loads[item.end] -= item.size_bytes;
    task.items.push_back(item);
    task.sources.push_back(i);
  }
  std::partial_sum(task.loads.begin(), task.loads.end(), task.loads.begin());
  return task;
}

size_t FullestLoad(const PackTask& task, const PackItem& item) {
  size_t load = 0;
  for (size_t moment = item.first; moment < item.end; ++moment) {
    load = std::max(load, task.loads[moment]);
  }
  return load;
}

// Sort key of an order: first descending, ties by the second descending, then in input order.
struct SortKey {
  double primary = 0;
  double secondary = 0;
};

using KeyFunction = SortKey (*)(const PackTask&, const PackItem&);

double Size(const PackItem& item) { return static_cast<double>(item.size_bytes); }
double Duration(const PackItem& item) { return static_cast<double>(item.end - item.first); }

constexpr std::array<KeyFunction, 6> kOrders = {
    // Large before small.
    +[](const PackTask&, const PackItem& item) {
      return SortKey{Size(item), Duration(item)};
    },
    // By size times lifetime.
    +[](const PackTask&, const PackItem& item) {
      return SortKey{Size(item) * Duration(item), Size(item)};
    },
    // Long lifetimes at the bottom.
    +[](const PackTask&, const PackItem& item) {
      return SortKey{Duration(item), Size(item)};
    },
    // By start.
    +[](const PackTask&, const PackItem& item) {
      return SortKey{-static_cast<double>(item.first), Size(item)};
    },
    // By end, latest first: backward releases what forward made.
    +[](const PackTask&, const PackItem& item) {
      return SortKey{static_cast<double>(item.end), Size(item)};
    },
    // The step with the most bytes first.
    +[](const PackTask& task, const PackItem& item) {
      return SortKey{static_cast<double>(FullestLoad(task, item)), Size(item)};
    },
};

std::vector<uint32_t> MakeOrder(const PackTask& task, KeyFunction key_function) {
  std::vector<SortKey> keys;
  for (const PackItem& item : task.items) keys.push_back(key_function(task, item));
  std::vector<uint32_t> order(task.items.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    if (keys[a].primary != keys[b].primary) return keys[a].primary > keys[b].primary;
    return keys[a].secondary > keys[b].secondary;
  });
  return order;
}

Packing PackGreedily(const PackTask& task, size_t goal_bytes) {
  ItemPacker packer(task.items);
  Packing best;
  best.peak_bytes = kNoLimit;
  Packing trial;
  const auto pack = [&](const std::vector<uint32_t>& order) {
    for (Fit fit : {Fit::kLowest, Fit::kTightest}) {
      if (best.peak_bytes <= goal_bytes) return;
      if (packer.Pack(order, fit, best.peak_bytes - 1, trial)) std::swap(best, trial);
    }
  };
  for (KeyFunction key_function : kOrders) pack(MakeOrder(task, key_function));
  if (best.peak_bytes <= goal_bytes) return best;
  for (ValleyChoice choice : {ValleyChoice::kLongest, ValleyChoice::kLargest}) {
    pack(MakeSkylineOrder(task.items, choice));
  }
  return best;
}

}  // namespace

size_t LowerBoundBytes(std::span<const Interval> intervals) {
  const PackTask task = MakeTask(intervals, /*alignment=*/1);
  return task.loads.empty() ? 0 : *std::max_element(task.loads.begin(), task.loads.end());
}

OffsetPlan PlaceIntervals(std::span<const Interval> intervals, size_t alignment) {
  THIMBLE_CHECK(alignment > 0 && (alignment & (alignment - 1)) == 0, "alignment {}", alignment);
  OffsetPlan plan{std::vector<size_t>(intervals.size(), 0), 0, LowerBoundBytes(intervals)};
  const PackTask task = MakeTask(intervals, alignment);
  if (task.items.empty()) return plan;
  // The bound is tighter with sizes rounded up to the alignment, since all offsets are multiples.
  const size_t goal_bytes = *std::max_element(task.loads.begin(), task.loads.end());
  const Packing packing = ImproveOrder(task.items, PackGreedily(task, goal_bytes), goal_bytes);
  for (size_t i = 0; i < task.items.size(); ++i) plan.offsets[task.sources[i]] = packing.offsets[i];
  plan.peak_bytes = packing.peak_bytes;
  return plan;
}

OffsetPlan PlaceWithoutSharing(std::span<const Interval> intervals, size_t alignment) {
  OffsetPlan plan{{}, 0, LowerBoundBytes(intervals)};
  for (const Interval& interval : intervals) {
    plan.offsets.push_back(interval.size_bytes == 0 ? 0 : plan.peak_bytes);
    plan.peak_bytes += RoundUp(interval.size_bytes, alignment);
  }
  return plan;
}

}  // namespace thimble
