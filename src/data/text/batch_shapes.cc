#include "thimble/data/text/batch_shapes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <limits>
#include <map>
#include <utility>

#include "thimble/base/check.h"

namespace thimble {
namespace {

// What a batch costs besides its tokens, as a share of max_tokens. Keeps rare lengths of small data
// sets from getting batches of their own.
constexpr int64_t kBatchCostShare = 4;
// The search moves between lengths that differ by at least one in 32. With one in 16 it pads 0.3
// points more of the real text in docs/text-data.md; without rounding it pads no less.
constexpr uint32_t kLengthSteps = 32;
// Rounds of changes after each added shape; 2 or 4 of them pad as much.
constexpr int kRoundsPerShape = 1;
constexpr int kMostRounds = 50;

int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Some pairs, and the lengths that a shape needs to hold them.
struct PairGroup {
  int64_t pairs = 0;
  PairLength length;

  void Add(const PairGroup& other) {
    pairs += other.pairs;
    length.source = std::max(length.source, other.length.source);
    length.target = std::max(length.target, other.length.target);
  }
  friend bool operator==(const PairGroup&, const PairGroup&) = default;
};

int64_t BatchesOf(const PairGroup& group, int64_t max_tokens) {
  return CeilDivide(group.pairs, max_tokens / std::max(group.length.source, group.length.target));
}

BatchShape ShapeOf(const PairGroup& group, int64_t max_tokens) {
  const int64_t sentences = CeilDivide(group.pairs, BatchesOf(group, max_tokens));
  return {sentences, group.length.source, group.length.target};
}

// What an epoch of the group costs in one shape: tokens, padding included, and batches.
int64_t CostOf(const PairGroup& group, int64_t max_tokens) {
  if (group.pairs == 0) return 0;
  const int64_t batches = BatchesOf(group, max_tokens);
  return batches * (TokensOf(ShapeOf(group, max_tokens)) + max_tokens / kBatchCostShare);
}

bool IsShorter(const PairLength& a, const PairLength& b) {
  const int32_t tokens_a = a.source + a.target;
  const int32_t tokens_b = b.source + b.target;
  return tokens_a != tokens_b ? tokens_a < tokens_b : a.source < b.source;
}

int32_t StepAt(int32_t length) {
  const uint32_t power = std::bit_floor(static_cast<uint32_t>(length));
  return static_cast<int32_t>(std::max<uint32_t>(power / kLengthSteps, 1));
}
int32_t RoundLengthUp(int32_t length) {
  const int32_t step = StepAt(length);
  return (length + step - 1) / step * step;
}

// Pairs of equal lengths, counted.
using LengthCounts = std::map<std::pair<int32_t, int32_t>, PairGroup>;

LengthCounts CountLengths(const TextDataset& dataset) {
  LengthCounts counts;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const PairLength length = dataset.LengthAt(i);
    counts[{length.source, length.target}].Add({1, length});
  }
  return counts;
}

// The same with lengths rounded up: fewer groups, which still have their exact lengths.
LengthCounts RoundedUp(const LengthCounts& counts) {
  LengthCounts rounded;
  for (const auto& [length, group] : counts) {
    rounded[{RoundLengthUp(length.first), RoundLengthUp(length.second)}].Add(group);
  }
  return rounded;
}

// Puts all pairs into the first shape that holds them. `shapes` are by rising length. Groups may be
// left empty; the last has the pairs that no shape holds.
std::vector<PairGroup> GroupByShape(const LengthCounts& counts,
                                    const std::vector<PairLength>& shapes) {
  std::vector<PairGroup> groups(shapes.size() + 1);
  for (const auto& [length, group] : counts) {
    size_t i = 0;
    while (i < shapes.size() &&
           (length.first > shapes[i].source || length.second > shapes[i].target)) {
      ++i;
    }
    groups[i].Add(group);
  }
  return groups;
}

class ShapeSearch {
 public:
  ShapeSearch(const LengthCounts& counts, const BatchLimits& limits)
      : counts_(RoundedUp(counts)), limits_(limits) {
    PairLength longest;
    for (const auto& [length, group] : counts_) {
      longest = {std::max(longest.source, length.first), std::max(longest.target, length.second)};
    }
    shapes_ = {longest};
    cost_ = CostOfShapes(shapes_);
  }

  // By rising length.
  std::vector<PairLength> Find() {
    while (std::ssize(shapes_) < limits_.max_shapes && AddShape()) ChangeLengths(kRoundsPerShape);
    ChangeLengths(kMostRounds);
    std::sort(shapes_.begin(), shapes_.end(), IsShorter);
    return shapes_;
  }

 private:
  int64_t CostOfShapes(std::vector<PairLength> shapes) const {
    std::sort(shapes.begin(), shapes.end(), IsShorter);
    const std::vector<PairGroup> groups = GroupByShape(counts_, shapes);
    if (groups.back().pairs > 0) return std::numeric_limits<int64_t>::max();
    int64_t cost = 0;
    for (const PairGroup& group : groups) cost += CostOf(group, limits_.max_tokens);
    return cost;
  }

  // Keeps the shapes if they cost less.
  bool Accept(const std::vector<PairLength>& shapes) {
    const int64_t cost = CostOfShapes(shapes);
    if (cost >= cost_) return false;
    cost_ = cost;
    best_ = shapes;
    return true;
  }

  // Adds the best of some shapes that are smaller than one that is there. False if none helps.
  bool AddShape() {
    constexpr std::array<int32_t, 3> kTwentieths = {10, 15, 18};
    bool added = false;
    std::vector<PairLength> shapes = shapes_;
    shapes.emplace_back();
    for (const PairLength& shape : shapes_) {
      const auto try_shape = [&](int32_t source, int32_t target) {
        shapes.back() = {std::max(source, 1), std::max(target, 1)};
        added = Accept(shapes) || added;
      };
      for (const int32_t share : kTwentieths) {
        try_shape(shape.source * share / 20, shape.target);
        try_shape(shape.source, shape.target * share / 20);
        try_shape(shape.source * share / 20, shape.target * share / 20);
      }
    }
    if (added) shapes_ = best_;
    return added;
  }

  // Makes shapes longer or shorter on one side as long as that helps.
  void ChangeLengths(int most_rounds) {
    for (int round = 0; round < most_rounds; ++round) {
      const int64_t before = cost_;
      for (size_t i = 0; i < shapes_.size(); ++i) {
        ChangeLength(i, &PairLength::source);
        ChangeLength(i, &PairLength::target);
      }
      if (cost_ == before) return;
    }
  }
  void ChangeLength(size_t shape, int32_t PairLength::*side) {
    for (const int32_t steps : {-4, -2, -1, 1, 2, 4}) {
      std::vector<PairLength> shapes = shapes_;
      int32_t& length = shapes[shape].*side;
      length = std::max(length + steps * StepAt(length), 1);
      if (Accept(shapes)) shapes_ = std::move(shapes);
    }
  }

  LengthCounts counts_;
  const BatchLimits& limits_;
  std::vector<PairLength> shapes_;
  std::vector<PairLength> best_;  // the last that was accepted
  int64_t cost_ = std::numeric_limits<int64_t>::max();
};

// Makes every shape as short as the pairs allow that it is the first to hold, and drops shapes that
// hold none. Shorter shapes come into another order and may hold other pairs first, so this is
// repeated until nothing changes.
std::vector<PairGroup> Tighten(const LengthCounts& counts, std::vector<PairLength> shapes) {
  while (true) {
    std::vector<PairGroup> groups = GroupByShape(counts, shapes);
    std::erase_if(groups, [](const PairGroup& group) { return group.pairs == 0; });
    std::sort(groups.begin(), groups.end(),
              [](const PairGroup& a, const PairGroup& b) { return IsShorter(a.length, b.length); });
    std::vector<PairLength> tight;
    for (const PairGroup& group : groups) tight.push_back(group.length);
    if (tight == shapes) return groups;
    shapes = std::move(tight);
  }
}

}  // namespace

std::vector<BatchShape> ChooseBatchShapes(const TextDataset& dataset, const BatchLimits& limits) {
  THIMBLE_CHECK(limits.max_shapes >= 1, "{} shapes", limits.max_shapes);
  const LengthCounts counts = CountLengths(dataset);
  for (const auto& [length, group] : counts) {
    const int32_t longest = std::max(length.first, length.second);
    THIMBLE_CHECK(longest <= limits.max_tokens, "a sentence of {} tokens in batches of {}", longest,
                  limits.max_tokens);
  }
  std::vector<BatchShape> shapes;
  for (const PairGroup& group : Tighten(counts, ShapeSearch(counts, limits).Find())) {
    shapes.push_back(ShapeOf(group, limits.max_tokens));
  }
  return shapes;
}

}  // namespace thimble
