#include "thimble/plan/recompute/fewest_bytes.h"

#include <algorithm>
#include <vector>

#include "thimble/plan/recompute/forward_costs.h"

namespace thimble {
namespace {

// The dynamic programming of OptimalSchedules with a single number per problem.
class FewestOfProblems {
 public:
  FewestOfProblems(const Graph& graph, const OpRegistry& ops, const Chain& chain)
      : stretches_(graph, ops, chain),
        num_stages_(chain.num_stages),
        forward_(stretches_, num_stages_),
        fewest_(num_stages_ * num_stages_) {}

  size_t Run() {
    for (size_t s = 0; s < num_stages_; ++s) {
      saved_backward_.push_back(stretches_.Backward(s, true).bytes);
    }
    for (size_t t = 0; t < num_stages_; ++t) {
      entries_.clear();
      for (size_t i = 0; i <= t; ++i) entries_.push_back(stretches_.Entries(i, t));
      for (size_t s = t + 1; s-- > 0;) Of(s, t) = Solve(s, t);
    }
    return Of(0, num_stages_ - 1);
  }

 private:
  size_t& Of(size_t s, size_t t) { return fewest_[s * num_stages_ + t]; }

  size_t Solve(size_t s, size_t t) {
    if (s == t && t + 1 < num_stages_) return stretches_.Backward(s, false).bytes;
    size_t fewest = WithSaved(s, t);
    for (size_t i = s + 1; i <= t; ++i) {
      // Running forward takes the longest to count, and few splits are worth it.
      const auto [count, kept] = entries_[i][s];
      const size_t others = std::max(kept + Of(i, t), Of(s, i - 1));
      if (others >= fewest) continue;
      const size_t forward = forward_.Of(s, i, t, count).bytes + stretches_.GradientBytes(t);
      fewest = std::min(fewest, std::max(others, forward));
    }
    return fewest;
  }

  size_t WithSaved(size_t s, size_t t) {
    const size_t forward = stretches_.ForwardSaving(s, t).bytes + stretches_.GradientBytes(t);
    const size_t least = std::max(forward, saved_backward_[s]);
    return s == t ? least : std::max(least, stretches_.SavedBytes(s, t) + Of(s + 1, t));
  }

  Stretches stretches_;
  size_t num_stages_;
  ForwardCosts forward_;
  std::vector<size_t> fewest_;                              // by problem
  std::vector<size_t> saved_backward_;                      // bytes of Backward(s, true), by s
  std::vector<std::vector<Stretches::EntrySize>> entries_;  // Entries(i, t) of the current t, by i
};

}  // namespace

size_t FewestBytes(const Graph& graph, const OpRegistry& ops, const Chain& chain) {
  return chain.num_stages == 0 ? 0 : FewestOfProblems(graph, ops, chain).Run();
}

}  // namespace thimble
