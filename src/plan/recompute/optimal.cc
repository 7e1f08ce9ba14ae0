#include "thimble/plan/recompute/optimal.h"

#include <algorithm>
#include <limits>

#include "thimble/base/check.h"

namespace thimble {
namespace {

// The last point that fits, which has the least work within the bytes; nullptr if none does.
template <class Front>
auto Within(const Front& front, size_t bytes) -> const typename Front::value_type* {
  const auto behind =
      std::upper_bound(front.begin(), front.end(), bytes,
                       [](size_t limit, const auto& point) { return limit < point.bytes; });
  return behind == front.begin() ? nullptr : &*std::prev(behind);
}

// Drops points that are not better than another one. Requires ascending bytes.
template <class Front>
void KeepBest(const Front& from, Front& to) {
  to.clear();
  for (const auto& point : from) {
    if (!to.empty() && to.back().work <= point.work) continue;
    if (!to.empty() && to.back().bytes == point.bytes) to.pop_back();
    to.push_back(point);
  }
}

}  // namespace

OptimalSchedules::OptimalSchedules(const Graph& graph, const OpRegistry& ops, const Chain& chain)
    : stretches_(graph, ops, chain),
      num_stages_(chain.num_stages),
      max_points_(chain.num_stages > kLongChain ? kMaxPointsOfLongChains : kMaxPoints) {
  fronts_.resize(num_stages_ * num_stages_);
  known_.resize(num_stages_ * num_stages_);
  for (size_t s = 0; s < num_stages_; ++s) saved_backward_.push_back(stretches_.Backward(s, true));
  for (size_t t = 0; t < num_stages_; ++t) {
    entries_.clear();
    for (size_t i = 0; i <= t; ++i) entries_.push_back(stretches_.Entries(i, t));
    for (size_t s = t + 1; s-- > 0;) Solve(s, t);
  }
}

void OptimalSchedules::Solve(size_t s, size_t t) {
  Front& front = fronts_[s * num_stages_ + t];
  if (s == t && !IsFirstPass(t)) {
    const StretchCost cost = stretches_.Backward(s, false);
    front = {{cost.bytes, cost.work, kSave}};
    return;
  }
  AddSaved(s, t, front);
  for (size_t i = s + 1; i <= t; ++i) AddSplit(s, t, i, front);
  if (front.size() > max_points_) ThinOut(front);
  front.shrink_to_fit();
}

void OptimalSchedules::ThinOut(Front& front) {
  thinned_out_ = true;
  Front kept;
  for (size_t k = 0; k < max_points_; ++k) {
    kept.push_back(front[k * (front.size() - 1) / (max_points_ - 1)]);
  }
  front = std::move(kept);
}

void OptimalSchedules::AddSaved(size_t s, size_t t, Front& front) {
  const StretchCost forward = stretches_.ForwardSaving(s, t);
  const size_t least =
      std::max(forward.bytes + stretches_.GradientBytes(t), saved_backward_[s].bytes);
  if (s == t) {
    front.push_back({least, forward.work, kSave});
    return;
  }
  const size_t saved = stretches_.SavedBytes(s, t);
  candidate_.clear();
  for (const Point& rest : FrontOf(s + 1, t)) {
    candidate_.push_back({std::max(least, saved + rest.bytes), rest.work + forward.work, kSave});
  }
  KeepBest(candidate_, front);
}

OptimalSchedules::Split OptimalSchedules::SplitOf(size_t s, size_t i, size_t t) {
  const Stretches::EntrySize entry = entries_[i][s];
  std::vector<Known>& known = known_[s * num_stages_ + i];
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](const Known& k) { return k.count == entry.count; });
  // In the first pass all nodes run; it is solved last.
  StretchCost cost;
  if (!IsFirstPass(t) && found != known.end()) {
    cost = found->cost;
  } else {
    cost = stretches_.Forward(s, i, t);
    known.push_back({entry.count, cost});
  }
  return {cost.bytes + stretches_.GradientBytes(t), cost.work, entry.bytes};
}

void OptimalSchedules::AddSplit(size_t s, size_t t, size_t i, Front& front) {
  const auto [least, work, kept] = SplitOf(s, i, t);
  const Front& right = FrontOf(i, t);
  const Front& left = FrontOf(s, i - 1);
  // Skip if a known point is within both the fewest bytes and the least work possible here.
  const size_t fewest = std::max({least, kept + right.front().bytes, left.front().bytes});
  const double least_work = work + right.back().work + left.back().work;
  const Point* known = Within(front, fewest);
  if (known != nullptr && known->work <= least_work) return;

  // Most splits are nowhere better than the points known; then nothing needs to be merged.
  candidate_.clear();
  size_t r = 0;
  size_t l = 0;
  size_t f = 0;  // known points within the bytes
  size_t bytes = fewest;
  for (;;) {
    while (r + 1 < right.size() && kept + right[r + 1].bytes <= bytes) ++r;
    while (l + 1 < left.size() && left[l + 1].bytes <= bytes) ++l;
    while (f < front.size() && front[f].bytes <= bytes) ++f;
    const double known_work = f > 0 ? front[f - 1].work : std::numeric_limits<double>::infinity();
    const double this_work = work + right[r].work + left[l].work;
    if (this_work < known_work) {
      candidate_.push_back({bytes, this_work, static_cast<uint16_t>(i)});
    } else if (known_work <= least_work) {
      break;
    }
    size_t next = SIZE_MAX;
    if (r + 1 < right.size()) next = std::min(next, kept + right[r + 1].bytes);
    if (l + 1 < left.size()) next = std::min(next, left[l + 1].bytes);
    if (next == SIZE_MAX) break;
    bytes = next;
  }
  if (candidate_.empty()) return;
  joined_.clear();
  std::merge(front.begin(), front.end(), candidate_.begin(), candidate_.end(),
             std::back_inserter(joined_),
             [](const Point& a, const Point& b) { return a.bytes < b.bytes; });
  KeepBest(joined_, front);
}

std::vector<TradeOff> OptimalSchedules::tradeoffs() const {
  std::vector<TradeOff> tradeoffs;
  if (num_stages_ == 0) return tradeoffs;
  for (const Point& point : FrontOf(0, num_stages_ - 1)) {
    tradeoffs.push_back({point.bytes, point.work});
  }
  return tradeoffs;
}

RebuildSchedule OptimalSchedules::Make(size_t bytes) const {
  RebuildSchedule schedule;
  Emit(0, num_stages_ - 1, bytes, schedule);
  schedule.shrink_to_fit();
  return schedule;
}

void OptimalSchedules::Emit(size_t s, size_t t, size_t bytes, RebuildSchedule& schedule) const {
  const auto append = [&](const std::vector<ChainStep>& steps) {
    schedule.insert(schedule.end(), steps.begin(), steps.end());
  };
  if (s == t && !IsFirstPass(t)) return append(stretches_.BackwardSteps(s, false));
  const Point* point = Within(FrontOf(s, t), bytes);
  THIMBLE_CHECK(point != nullptr, "no schedule of stages {} to {} within {} bytes", s, t, bytes);
  if (point->choice == kSave) {
    append(stretches_.ForwardSavingSteps(s, t));
    if (s < t) Emit(s + 1, t, point->bytes - stretches_.SavedBytes(s, t), schedule);
    return append(stretches_.BackwardSteps(s, true));
  }
  const size_t i = point->choice;
  append(stretches_.ForwardSteps(s, i, t));
  Emit(i, t, point->bytes - stretches_.Entry(s, i, t).bytes, schedule);
  Emit(s, i - 1, point->bytes, schedule);
}

}  // namespace thimble
