// Candidates: the schedules from which `--recompute optimal` chooses, with their placed arenas. The
// set depends only on the graph, never on a limit, so that a lower limit cannot lead to a larger
// arena.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "thimble/plan/draft.h"
#include "thimble/plan/recompute/rebuild_schedule.h"

namespace thimble {

// The arena of a draft after the later passes; and its bytes alive at the peak, a lower bound for
// every placement.
size_t PlacedArenaBytes(const PlanDraft& draft, const OpRegistry& ops, const PlanOptions& options);
size_t LiveArenaBytes(const PlanDraft& draft, const OpRegistry& ops, const PlanOptions& options);

// The work of forward nodes that run again.
double RerunWork(const Chain& chain, const RebuildSchedule& schedule);

// The draft and, unless the order is fixed, copies with other orders of its nodes: the best order
// for keeping everything may not be the best for rebuilding.
std::vector<PlanDraft> DraftsToTry(const PlanDraft& draft, const PlanOptions& options);

class Candidates {
 public:
  // The arguments must outlive this.
  Candidates(const OpRegistry& ops, const PlanOptions& options) : ops_(ops), options_(options) {}

  // Adds the optimal and the named schedules of these drafts, which must outlive this. With long
  // chains two threads search, count and place.
  Result<void> Add(std::span<const PlanDraft> drafts);

  // The candidate with the least work whose arena is within the limit; none if nothing fits.
  std::optional<PlanDraft> LeastWorkWithin(size_t limit_bytes);
  // The smallest arena; among equals the least work. Requires that something was added.
  PlanDraft Smallest();
  // Any candidate whose arena is within these bytes; if there is none, one that is above, not
  // placed well. In a part of the time that Smallest takes. Requires that something was added.
  PlanDraft AnyWithin(size_t bytes);

 private:
  struct Source {
    size_t number = 0;
    const PlanDraft& draft;
    Chain chain;
    std::optional<size_t> fewest_bytes = {};  // of its optimal schedules
    bool is_searched = false;                 // whether these are among the candidates
  };
  struct Candidate {
    const Source* source = nullptr;
    size_t number = 0;  // of the source's; decides between candidates with equal work
    double work = 0;
    RebuildSchedule schedule = {};
    size_t promised_bytes = 0;  // peak by OptimalSchedules; 0 for named ones
    std::optional<size_t> live_bytes = {};
    std::optional<size_t> placed_bytes = {};
    std::optional<PlacedIntervals> placed = {};  // of the best so far
  };

  void FindFewestBytes();
  // Adds the optimal schedules of the drafts that have some which are not far above these bytes.
  // Searching takes long, and some orders need many times the bytes of others.
  void SearchWithin(size_t bytes);
  // Keeps the order of all candidates, which does not depend on when they were added.
  void Add(std::vector<std::vector<Candidate>> found);
  std::vector<Candidate> Optimal(const Source& source) const;
  std::vector<Candidate> Named(const Source& source) const;
  PlanDraft Apply(const Candidate& candidate) const;
  // Hands its placement over to the draft.
  PlanDraft Choose(Candidate& candidate) const;
  using Task = std::function<void()>;
  // Runs the tasks, with long chains at the same time. They must not depend on each other.
  void RunAll(const std::vector<Task>& tasks) const;
  size_t LiveBytes(Candidate& candidate) const;
  size_t PlacedBytes(Candidate& candidate) const;

  const OpRegistry& ops_;
  const PlanOptions& options_;
  bool is_long_ = false;  // whether some chain is
  std::deque<Source> sources_;
  std::vector<Candidate> candidates_;  // least work first
};

}  // namespace thimble
