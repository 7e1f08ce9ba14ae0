// RunState: the state of a run besides its tensors; saved in checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "thimble/base/result.h"
#include "thimble/train/run_folder/train_summary.h"

namespace thimble {

struct RunState {
  int64_t step = 0;  // updates done
  // Sums over the samples of the epoch so far.
  double loss_sum = 0;
  int64_t correct = 0;
  int64_t samples = 0;
  // Of the last finished epoch, the last evaluation and the best one; nullopt before the first.
  std::optional<double> train_loss;
  std::optional<double> train_accuracy;
  std::optional<double> test_loss;
  std::optional<double> test_accuracy;
  std::optional<double> bleu;
  std::optional<double> best_accuracy;
  int64_t best_epoch = 0;
  double seconds = 0;  // spent in the loop by all sessions of the run
  // Size and checksum of metrics.jsonl at this step (metrics_file.h).
  int64_t metrics_bytes = 0;
  uint64_t metrics_checksum = 0;

  friend bool operator==(const RunState&, const RunState&) = default;
};

// Notes the results of an evaluation. Returns whether they are the best ones so far.
bool NoteEvaluation(const EpochReport& report, RunState& state);
// The results so far.
void AddResults(const RunState& state, TrainSummary& summary);

// Exact: numbers are read back bit for bit. Requires that they are finite.
std::string ToJson(const RunState& state);
// kBadInput if a member is missing or has the wrong type, or if a count is negative.
Result<RunState> RunStateFromJson(const std::string& text);

}  // namespace thimble
