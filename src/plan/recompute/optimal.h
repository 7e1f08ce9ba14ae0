// The best schedules of a chain: for each number of bytes the least work, by dynamic programming.
//
// The class of schedules, over the chain's fixed order of stages and backward steps:
// - A problem (s, t), see stretches.h, has an entry, which is kept until the problem is solved,
//   except that values last needed by the backward steps of s are released with these. It is solved
//   in one of three ways:
//   * s = t: run the backward steps of s, rebuilding what they read just before.
//   * split at a stage i, s < i <= t: run forward from s for the entry of (i, t); solve (i, t) with
//     its entry kept; then solve (s, i-1).
//   * save stage s: run it forward, keep what its backward steps read and what the problem (s+1, t)
//     needs; solve (s+1, t); run the backward steps of s.
// - A whole step is the problem (0, L-1). Each split runs a stretch of stages once more.
//
// Peaks count what stretches.h counts: the entries of all enclosing problems, rebuilt values,
// gradients of activations and parameters, scratch. For each problem all trade-offs of bytes and
// work are kept exactly, up to a maximum number; above it they are thinned out evenly. So within
// the class, and if nothing was thinned out, no schedule with the same peak does less work.
//
// The method is that of optimal checkpointing for heterogeneous chains (rotor), with sets of values
// in place of single activations and with exact trade-offs in place of memory slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "thimble/plan/recompute/forward_costs.h"
#include "thimble/plan/recompute/rebuild_schedule.h"

namespace thimble {

// A reachable peak and the least work for it.
struct TradeOff {
  size_t bytes = 0;
  double work = 0;
  friend bool operator==(const TradeOff&, const TradeOff&) = default;
};

class OptimalSchedules {
 public:
  // Maximum number of trade-offs per problem; in practice all of them for small chains.
  static constexpr size_t kMaxPoints = 1000;
  static constexpr size_t kMaxPointsOfLongChains = 24;
  static constexpr size_t kLongChain = 64;  // stages

  // Solves all problems. The arguments must outlive this.
  OptimalSchedules(const Graph& graph, const OpRegistry& ops, const Chain& chain);

  // Fewest bytes first, least work last.
  std::vector<TradeOff> tradeoffs() const;
  // Whether some trade-offs of some problem were left out.
  bool thinned_out() const { return thinned_out_; }
  // The schedule with the least work whose peak is at most `bytes`. Requires that one exists.
  RebuildSchedule Make(size_t bytes) const;

 private:
  static constexpr uint16_t kSave = UINT16_MAX;  // in place of a split
  struct Point {
    size_t bytes;
    double work;
    uint16_t choice;  // the stage to split at, or kSave; unused if s = t
  };
  using Front = std::vector<Point>;  // bytes rise, work falls

  const Front& FrontOf(size_t s, size_t t) const { return fronts_[s * num_stages_ + t]; }
  bool IsFirstPass(size_t t) const { return t + 1 == num_stages_; }
  void Solve(size_t s, size_t t);
  void AddSplit(size_t s, size_t t, size_t i, Front& front);
  void AddSaved(size_t s, size_t t, Front& front);
  void ThinOut(Front& front);
  void Emit(size_t s, size_t t, size_t bytes, RebuildSchedule& schedule) const;

  Stretches stretches_;
  size_t num_stages_;
  size_t max_points_;
  std::vector<Front> fronts_;  // by problem
  ForwardCosts forward_;
  std::vector<std::vector<Stretches::EntrySize>> entries_;  // Entries(i, t) of the current t, by i
  std::vector<StretchCost> saved_backward_;                 // Backward(s, true), by s
  Front joined_;                                            // temporary
  Front candidate_;
  bool thinned_out_ = false;
};

}  // namespace thimble
