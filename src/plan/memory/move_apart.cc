#include "thimble/plan/memory/move_apart.h"

#include <algorithm>

#include "thimble/base/byte_size.h"

namespace thimble {
namespace {

// More than any sum of missing steps.
constexpr int64_t kForbidden = int64_t{1} << 40;

// The cost if two intervals share a byte.
int64_t CostOfSharing(LiveRange a, LiveRange b, size_t rest_steps) {
  if (a.Overlaps(b)) return kForbidden;
  const size_t rest = a.end <= b.first ? b.first - a.end : a.first - b.end;
  return rest < rest_steps ? static_cast<int64_t>(rest_steps - rest) : 0;
}

// The cost changes by this much from this offset on.
struct CostChange {
  size_t place = 0;
  int64_t change = 0;
};

class Mover {
 public:
  Mover(std::span<const Interval> intervals, std::vector<size_t> offsets, size_t alignment,
        size_t rest_steps)
      : intervals_(intervals),
        offsets_(std::move(offsets)),
        alignment_(alignment),
        rest_steps_(rest_steps) {
    for (size_t i = 0; i < intervals.size(); ++i) {
      if (Size(i) > 0) peak_ = std::max(peak_, offsets_[i] + Size(i));
    }
  }

  std::vector<size_t> Run() {
    for (size_t i = 0; i < intervals_.size(); ++i) {
      if (Size(i) > 0) Move(i);
    }
    return std::move(offsets_);
  }

 private:
  size_t Size(size_t i) const { return RoundUp(intervals_[i].size_bytes, alignment_); }

  // Moves interval i to the cheapest offset; among equals its current one, else the lowest.
  void Move(size_t i) {
    int64_t cheapest = PresentCost(i);
    if (cheapest == 0) return;
    FindCostChanges(i);
    const size_t last_place = peak_ - Size(i);
    int64_t cost = 0;
    for (size_t k = 0; k < changes_.size() && changes_[k].place <= last_place; ++k) {
      cost += changes_[k].change;
      const bool more_here = k + 1 < changes_.size() && changes_[k + 1].place == changes_[k].place;
      if (more_here || cost >= cheapest) continue;
      cheapest = cost;
      offsets_[i] = changes_[k].place;
    }
  }

  int64_t PresentCost(size_t i) const {
    int64_t cost = 0;
    for (size_t other = 0; other < intervals_.size(); ++other) {
      if (other != i && offsets_[i] < offsets_[other] + intervals_[other].size_bytes &&
          offsets_[other] < offsets_[i] + intervals_[i].size_bytes) {
        cost += CostOfSharing(intervals_[i].live, intervals_[other].live, rest_steps_);
      }
    }
    return cost;
  }

  // Sorted by offset: two changes for each interval that could share a byte, and the lowest offset.
  void FindCostChanges(size_t i) {
    changes_ = {{0, 0}};
    for (size_t other = 0; other < intervals_.size(); ++other) {
      if (other == i || Size(other) == 0) continue;
      const int64_t cost = CostOfSharing(intervals_[i].live, intervals_[other].live, rest_steps_);
      if (cost == 0) continue;
      const size_t begin = offsets_[other];
      const size_t reach = Size(i) - alignment_;
      changes_.push_back({begin > reach ? begin - reach : 0, cost});
      changes_.push_back({begin + Size(other), -cost});
    }
    std::sort(changes_.begin(), changes_.end(),
              [](const CostChange& a, const CostChange& b) { return a.place < b.place; });
  }

  std::span<const Interval> intervals_;
  std::vector<size_t> offsets_;
  size_t alignment_;
  size_t rest_steps_;
  size_t peak_ = 0;
  std::vector<CostChange> changes_;
};

}  // namespace

std::vector<size_t> MoveApart(std::span<const Interval> intervals, std::vector<size_t> offsets,
                              size_t alignment, size_t rest_steps) {
  return Mover(intervals, std::move(offsets), alignment, rest_steps).Run();
}

size_t MissingRest(std::span<const Interval> intervals, std::span<const size_t> offsets,
                   size_t rest_steps) {
  size_t missing = 0;
  for (size_t i = 0; i < intervals.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const bool share = offsets[i] < offsets[j] + intervals[j].size_bytes &&
                         offsets[j] < offsets[i] + intervals[i].size_bytes;
      if (!share) continue;
      missing +=
          static_cast<size_t>(CostOfSharing(intervals[i].live, intervals[j].live, rest_steps));
    }
  }
  return missing;
}

}  // namespace thimble
