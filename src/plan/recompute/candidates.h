// Candidates: the schedules among which `--recompute optimal` chooses, measured as they will be
// placed. The set depends on the graph alone and never on a limit, so that a lower limit cannot
// lead to a larger arena.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "thimble/plan/draft.h"
#include "thimble/plan/recompute/rebuild_schedule.h"

namespace thimble {

// Bytes of the arena that a draft leads to once the later passes have run; and of them what is
// alive at the fullest step, which no placement can get below.
size_t PlacedArenaBytes(const PlanDraft& draft, const OpRegistry& ops, const PlanOptions& options);
size_t LiveArenaBytes(const PlanDraft& draft, const OpRegistry& ops, const PlanOptions& options);

// The work of forward nodes that run again.
double RerunWork(const Chain& chain, const RebuildSchedule& schedule);

// The draft as it is and, unless the order must stay, with other orders of its nodes: the
// best order when everything is kept may not be the best when much is rebuilt.
std::vector<PlanDraft> DraftsToTry(const PlanDraft& draft, const PlanOptions& options);

class Candidates {
 public:
  // The arguments must outlive this.
  Candidates(const OpRegistry& ops, const PlanOptions& options) : ops_(ops), options_(options) {}

  // Adds the best and the named schedules of this draft, which must outlive this.
  Result<void> Add(const PlanDraft& draft);

  // The least work within a limit on the arena; none where nothing fits.
  std::optional<PlanDraft> LeastWorkWithin(size_t limit_bytes);
  // The smallest arena; of equals the one with the least work. Requires that something was added.
  PlanDraft Smallest();

 private:
  struct Source {
    const PlanDraft& draft;
    Chain chain;
  };
  struct Candidate {
    const Source* source = nullptr;
    double work = 0;
    RebuildSchedule schedule = {};
    size_t promised_bytes = 0;  // by OptimalSchedules; 0 for named ones
    std::optional<size_t> live_bytes = {};
    std::optional<size_t> placed_bytes = {};
  };

  void AddNamed(const Source& source, const RecomputeSpec& spec);
  PlanDraft Apply(const Candidate& candidate) const;
  size_t LiveBytes(Candidate& candidate) const;
  size_t PlacedBytes(Candidate& candidate) const;

  const OpRegistry& ops_;
  const PlanOptions& options_;
  std::deque<Source> sources_;
  std::vector<Candidate> candidates_;  // least work first
};

}  // namespace thimble
