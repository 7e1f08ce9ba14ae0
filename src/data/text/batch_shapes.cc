#include "thimble/data/text/batch_shapes.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

#include "thimble/base/check.h"

namespace thimble {
namespace {

// More than four times as many places as cuts are needed; the time grows with the fourth power.
constexpr int kMaxPlaces = 48;
// Within one interval of source lengths: those of the target spread over little more than twice
// their mean.
constexpr int kMaxTargetCuts = 8;
// What a batch costs besides its tokens, as a share of max_tokens. Keeps rare lengths of small data
// sets from getting batches of their own.
constexpr int64_t kBatchCostShare = 4;
constexpr int64_t kNoCost = std::numeric_limits<int64_t>::max() / 4;

// Some pairs, and the lengths that a shape needs to hold them.
struct PairGroup {
  int64_t pairs = 0;
  int32_t source_length = 0;
  int32_t target_length = 0;

  void Add(const PairGroup& other) {
    pairs += other.pairs;
    source_length = std::max(source_length, other.source_length);
    target_length = std::max(target_length, other.target_length);
  }
};

int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t BatchesOf(const PairGroup& group, int64_t max_tokens) {
  const int64_t longest = std::max(group.source_length, group.target_length);
  return CeilDivide(group.pairs, max_tokens / longest);
}

BatchShape ShapeOf(const PairGroup& group, int64_t max_tokens) {
  const int64_t sentences = CeilDivide(group.pairs, BatchesOf(group, max_tokens));
  return {static_cast<int32_t>(sentences), group.source_length, group.target_length};
}

// What an epoch of the group costs in one shape: tokens, padding included.
int64_t CostOf(const PairGroup& group, int64_t max_tokens) {
  if (group.pairs == 0) return 0;
  const int64_t batches = BatchesOf(group, max_tokens);
  return batches * (ShapeOf(group, max_tokens).tokens() + max_tokens / kBatchCostShare);
}

// Lengths of one side at which cuts are considered: they part the tokens of the data set into
// nearly equal shares. The last is the greatest length.
class Places {
 public:
  // `counts[n]`: how many sentences have n tokens.
  explicit Places(const std::vector<int64_t>& counts) {
    int64_t left = 0;
    for (size_t n = 0; n < counts.size(); ++n) left += counts[n] * static_cast<int64_t>(n);
    int64_t gathered = 0;
    for (size_t n = 0; n < counts.size(); ++n) {
      gathered += counts[n] * static_cast<int64_t>(n);
      const int64_t share = CeilDivide(left, kMaxPlaces - std::ssize(upper_));
      if (gathered == 0 || (gathered < share && n + 1 < counts.size())) continue;
      upper_.push_back(static_cast<int32_t>(n));
      left -= gathered;
      gathered = 0;
    }
  }

  int size() const { return static_cast<int>(upper_.size()); }
  // The first place at or behind the length.
  int IndexOf(int32_t length) const {
    return static_cast<int>(std::lower_bound(upper_.begin(), upper_.end(), length) -
                            upper_.begin());
  }

 private:
  std::vector<int32_t> upper_;
};

// How many sentences of each side have which length.
struct LengthCounts {
  explicit LengthCounts(const TextDataset& dataset) {
    for (int64_t i = 0; i < dataset.size(); ++i) {
      const PairLength length = dataset.LengthAt(i);
      Count(source, length.source);
      Count(target, length.target);
    }
  }

  std::vector<int64_t> source;
  std::vector<int64_t> target;

 private:
  static void Count(std::vector<int64_t>& counts, int32_t length) {
    const auto n = static_cast<size_t>(length);
    if (n >= counts.size()) counts.resize(n + 1);
    ++counts[n];
  }
};

// The best cuts of one interval of source lengths into groups of target lengths.
class TargetCuts {
 public:
  // `columns`: the pairs of the interval by place of their target.
  TargetCuts(const std::vector<PairGroup>& columns, int64_t max_tokens)
      : columns_(columns), size_(static_cast<int>(columns.size())), max_tokens_(max_tokens) {
    cost_.resize(columns.size() + 1, {});
    from_.resize(columns.size() + 1, {});
    for (auto& row : cost_) row.fill(kNoCost);
    cost_[0].fill(0);
    for (int end = 1; end <= size_; ++end) FindBest(end);
  }

  // With at most `groups` groups, 1 to kMaxTargetCuts.
  int64_t Cost(int groups) const { return cost_[Index(size_)][Index(groups)]; }
  void AppendGroups(int groups, std::vector<PairGroup>& all) const {
    for (int end = size_; end > 0; --groups) {
      const int begin = from_[Index(end)][Index(groups)];
      const PairGroup group = Gather(begin, end);
      if (group.pairs > 0) all.push_back(group);
      end = begin;
    }
  }

 private:
  static size_t Index(int i) { return static_cast<size_t>(i); }

  PairGroup Gather(int begin, int end) const {
    PairGroup group;
    for (int i = begin; i < end; ++i) group.Add(columns_[Index(i)]);
    return group;
  }

  void FindBest(int end) {
    PairGroup group;
    for (int begin = end - 1; begin >= 0; --begin) {
      group.Add(columns_[Index(begin)]);
      const int64_t cost = CostOf(group, max_tokens_);
      for (int groups = 1; groups <= kMaxTargetCuts; ++groups) {
        const int64_t total = cost_[Index(begin)][Index(groups - 1)] + cost;
        if (total >= cost_[Index(end)][Index(groups)]) continue;
        cost_[Index(end)][Index(groups)] = total;
        from_[Index(end)][Index(groups)] = begin;
      }
    }
  }

  // Index: number of groups.
  template <class T>
  using ByGroups = std::array<T, kMaxTargetCuts + 1>;

  const std::vector<PairGroup>& columns_;
  int size_;
  int64_t max_tokens_;
  std::vector<ByGroups<int64_t>> cost_;  // of the first columns
  std::vector<ByGroups<int>> from_;      // where the last group of them begins
};

// The best cuts of the source lengths, each interval with its own cuts of the target lengths.
class ShapeSearch {
 public:
  ShapeSearch(const TextDataset& dataset, const LengthCounts& counts, const BatchLimits& limits)
      : limits_(limits), sources_(counts.source), targets_(counts.target) {
    cells_.resize(Index(sources_.size()), std::vector<PairGroup>(Index(targets_.size())));
    for (int64_t i = 0; i < dataset.size(); ++i) {
      const PairLength length = dataset.LengthAt(i);
      cells_[Index(sources_.IndexOf(length.source))][Index(targets_.IndexOf(length.target))].Add(
          {1, length.source, length.target});
    }
  }

  std::vector<PairGroup> Find() const {
    const int most = limits_.max_shapes;
    std::vector<std::vector<Best>> best(Index(sources_.size() + 1),
                                        std::vector<Best>(Index(most + 1)));
    for (Best& none : best[0]) none.cost = 0;
    for (int begin = 0; begin < sources_.size(); ++begin) {
      std::vector<PairGroup> columns(Index(targets_.size()));
      for (int end = begin + 1; end <= sources_.size(); ++end) {
        AddRow(end - 1, columns);
        Improve(begin, TargetCuts(columns, limits_.max_tokens), best[Index(begin)],
                best[Index(end)]);
      }
    }
    return Collect(best);
  }

 private:
  struct Best {
    int64_t cost = kNoCost;
    int begin = 0;   // of the last interval
    int groups = 0;  // in it
  };
  static size_t Index(int i) { return static_cast<size_t>(i); }

  void AddRow(int row, std::vector<PairGroup>& columns) const {
    for (size_t i = 0; i < columns.size(); ++i) columns[i].Add(cells_[Index(row)][i]);
  }

  // Index of `before` and `after`: number of shapes.
  static void Improve(int begin, const TargetCuts& cuts, const std::vector<Best>& before,
                      std::vector<Best>& after) {
    for (size_t shapes = 1; shapes < after.size(); ++shapes) {
      const int most = std::min(kMaxTargetCuts, static_cast<int>(shapes));
      for (int groups = 1; groups <= most; ++groups) {
        const int64_t cost = before[shapes - Index(groups)].cost + cuts.Cost(groups);
        if (cost < after[shapes].cost) after[shapes] = {cost, begin, groups};
      }
    }
  }

  std::vector<PairGroup> Collect(const std::vector<std::vector<Best>>& best) const {
    std::vector<PairGroup> groups;
    int shapes = limits_.max_shapes;
    for (int end = sources_.size(); end > 0;) {
      const Best& last = best[Index(end)][Index(shapes)];
      std::vector<PairGroup> columns(Index(targets_.size()));
      for (int row = last.begin; row < end; ++row) AddRow(row, columns);
      TargetCuts(columns, limits_.max_tokens).AppendGroups(last.groups, groups);
      shapes -= last.groups;
      end = last.begin;
    }
    return groups;
  }

  const BatchLimits& limits_;
  Places sources_;
  Places targets_;
  std::vector<std::vector<PairGroup>> cells_;  // [place of the source][place of the target]
};

bool IsShorter(const PairGroup& a, const PairGroup& b) {
  const int32_t tokens_a = a.source_length + a.target_length;
  const int32_t tokens_b = b.source_length + b.target_length;
  return tokens_a != tokens_b ? tokens_a < tokens_b : a.source_length < b.source_length;
}

// Puts every pair into the first group that holds it, which may be one of another interval, and
// drops groups that are left without pairs.
std::vector<PairGroup> Regrouped(const TextDataset& dataset, const std::vector<PairGroup>& groups) {
  std::vector<PairGroup> regrouped(groups.size());
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const PairLength length = dataset.LengthAt(i);
    const auto holds = [&](const PairGroup& group) {
      return length.source <= group.source_length && length.target <= group.target_length;
    };
    const auto group = std::find_if(groups.begin(), groups.end(), holds);
    regrouped[static_cast<size_t>(group - groups.begin())].Add({1, length.source, length.target});
  }
  std::erase_if(regrouped, [](const PairGroup& group) { return group.pairs == 0; });
  std::sort(regrouped.begin(), regrouped.end(), IsShorter);
  return regrouped;
}

}  // namespace

std::vector<BatchShape> ChooseBatchShapes(const TextDataset& dataset, const BatchLimits& limits) {
  THIMBLE_CHECK(limits.max_shapes >= 1, "{} shapes", limits.max_shapes);
  const LengthCounts counts(dataset);
  const size_t longest = std::max(counts.source.size(), counts.target.size()) - 1;
  THIMBLE_CHECK(longest <= static_cast<size_t>(limits.max_tokens),
                "a sentence of {} tokens in batches of {}", longest, limits.max_tokens);
  std::vector<PairGroup> groups = ShapeSearch(dataset, counts, limits).Find();
  std::sort(groups.begin(), groups.end(), IsShorter);
  std::vector<BatchShape> shapes;
  for (const PairGroup& group : Regrouped(dataset, groups)) {
    shapes.push_back(ShapeOf(group, limits.max_tokens));
  }
  return shapes;
}

}  // namespace thimble
