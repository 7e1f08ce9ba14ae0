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

// Appends the points that are better than all before them. Requires ascending bytes, and none
// fewer than those of the last point of `to`.
template <class Front>
void AppendBest(const Front& from, Front& to) {
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
      max_points_(chain.num_stages > kLongChain ? kMaxPointsOfLongChains : kMaxPoints),
      forward_(stretches_, num_stages_) {
  fronts_.resize(num_stages_ * num_stages_);
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
  AppendBest(candidate_, front);
}

void OptimalSchedules::AddSplit(size_t s, size_t t, size_t i, Front& front) {
  const auto [count, kept] = entries_[i][s];
  const auto [forward_bytes, work] = forward_.Of(s, i, t, count);
  const Front& right = FrontOf(i, t);
  const Front& left = FrontOf(s, i - 1);
  const size_t least = forward_bytes + stretches_.GradientBytes(t);
  // Skip if a known point is within both the fewest bytes and the least work possible here.
  const size_t fewest = std::max({least, kept + right.front().bytes, left.front().bytes});
  const double least_work = work + right.back().work + left.back().work;
  const Point* known = Within(front, fewest);
  if (known != nullptr && known->work <= least_work) return;

  // Most splits are nowhere better than the points known; then nothing needs to be merged.
  candidate_.clear();
  size_t r = 0;
  size_t l = 0;
  // Known points within the bytes.
  size_t f = known == nullptr ? 0 : static_cast<size_t>(known - front.data());
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
  const auto changed = std::lower_bound(
      front.begin(), front.end(), candidate_.front().bytes,
      [](const Point& point, size_t bytes_of_first) { return point.bytes < bytes_of_first; });
  joined_.clear();
  std::merge(changed, front.end(), candidate_.begin(), candidate_.end(),
             std::back_inserter(joined_),
             [](const Point& a, const Point& b) { return a.bytes < b.bytes; });
  front.erase(changed, front.end());
  AppendBest(joined_, front);
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
