// PlanSizer: plans configurations of one network for the same data and keeps only their sizes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "thimble/base/result.h"
#include "thimble/graph/op_def.h"
#include "thimble/model/image_classifier.h"
#include "thimble/program/lever.h"
#include "thimble/train/options/config.h"
#include "thimble/train/planning/training_program.h"
#include "thimble/train/step_time/op_times.h"

namespace thimble {

struct PlanSize {
  int64_t arena_bytes = 0;
  int64_t step_flops = 0;
  double step_seconds = 0;  // as predicted; 0: unknown
  size_t nodes = 0;         // in the graph of the first plan
};

// Up to this many nodes of a training graph, optimal recompute is found in a fraction of a second.
// wrn-28-2 has 252, and up to twice as many with recompute.
inline constexpr size_t kQuicklySearched = 800;

class PlanSizer {
 public:
  // `model` and `ops` must outlive the sizer. Without times, none are predicted.
  PlanSizer(const ImageClassifier& model, const ImageCounts& counts, const OpRegistry& ops,
            OpTimes times = {})
      : model_(model), counts_(counts), ops_(ops), times_(std::move(times)) {}

  const ImageClassifier& model() const { return model_; }
  const ImageCounts& counts() const { return counts_; }
  const OpRegistry& ops() const { return ops_; }
  const OpTimes& times() const { return times_; }

  // The arena is exactly that of MakeTrainingProgram; passes that save no bytes are left out.
  // Results are cached.
  Result<PlanSize> Of(TrainConfig config) const;
  // Whether there is a plan, of whatever size: false for options that do not suit the network.
  bool CanPlan(const TrainConfig& config) const;
  // How exact a run is with the configuration's value of this lever.
  Result<std::string> ExactnessOf(const Lever& lever, const TrainConfig& config) const;

 private:
  mutable std::map<std::string, PlanSize> known_;  // by configuration
  const ImageClassifier& model_;
  ImageCounts counts_;
  const OpRegistry& ops_;
  OpTimes times_;
};

}  // namespace thimble
