// RunState: what a run must remember from step to step beside its tensors; saved in checkpoints.
#pragma once

#include <cstdint>
#include <string>

#include "thimble/base/result.h"

namespace thimble {

struct RunState {
  int64_t step = 0;  // updates done
  // Sums over the samples of the epoch so far.
  double loss_sum = 0;
  int64_t correct = 0;
  int64_t samples = 0;
  // Of the last finished epoch and the best one.
  double train_loss = 0;
  double train_accuracy = 0;
  double test_loss = 0;
  double test_accuracy = 0;
  double best_accuracy = -1;
  int64_t best_epoch = 0;
  double seconds = 0;  // spent in the loop by all sessions of the run
  int64_t metrics_bytes = 0;

  friend bool operator==(const RunState&, const RunState&) = default;
};

// Exact: numbers come back bit for bit. Requires that they are finite.
std::string ToJson(const RunState& state);
// kBadInput where a member is missing or a count is not a whole number from 0 on.
Result<RunState> RunStateFromJson(const std::string& text);

}  // namespace thimble
