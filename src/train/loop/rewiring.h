// Rewiring of sparse weights: when it is due, and what it did.
#pragma once

#include <cstdint>
#include <optional>

#include "thimble/base/result.h"
#include "thimble/exec/executor.h"
#include "thimble/grad/update_spec.h"
#include "thimble/train/run_folder/train_summary.h"

namespace thimble {

// Writes a random pattern and the first threshold, if the program has sparse weights.
void InitializeSparsity(Executor& executor, const SparsitySpec& sparsity, uint64_t seed);

// kBadInput if the pattern of the residents is not one of this program, for instance because a
// checkpoint was damaged.
Result<void> CheckPatternOf(const Executor& executor);

// Whether weights are rewired after this many of a run's steps: after every `every` steps. 0: as in
// the paper for its 100,000 steps, scaled to the length of the run: every 100 steps in the first
// eighth, then every 200, from 2/5 on every 400, from 7/10 on every 800, not in the last twentieth.
// Then never more often than every kLeastStepsApart steps: new weights begin at 0 and must have
// time to grow.
inline constexpr int64_t kLeastStepsApart = 25;
bool RewiresAfter(int64_t step, int64_t num_steps, int64_t every = 0);

class Rewiring {
 public:
  // `executor` must outlive this.
  Rewiring(Executor& executor, std::optional<size_t> plan, const SparsitySpec& sparsity,
           int64_t num_steps)
      : executor_(executor), plan_(plan), every_(sparsity.rewire_every), num_steps_(num_steps) {}

  bool IsDueAfter(int64_t step) const { return plan_ && RewiresAfter(step, num_steps_, every_); }
  // Requires that it is due and that no step is in flight.
  RewiringReport Run(int64_t step);

 private:
  Executor& executor_;
  std::optional<size_t> plan_;
  int64_t every_;
  int64_t num_steps_;
};

}  // namespace thimble
