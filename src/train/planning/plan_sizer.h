// PlanSizer: plans configurations of one task and keeps only their sizes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "thimble/base/result.h"
#include "thimble/graph/op_def.h"
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
  // `ops` must outlive the sizer. Without times, none are predicted.
  PlanSizer(TaskPtr task, const OpRegistry& ops, OpTimes times = {})
      : task_(std::move(task)),
        sized_(task_->InLargestShapes()),
        ops_(ops),
        times_(std::move(times)) {
    if (sized_ == nullptr) sized_ = task_;
  }

  const TaskPtr& task() const { return task_; }
  // Whether arenas may be a little larger than Of says.
  bool is_estimate() const { return sized_ != task_; }
  const OpRegistry& ops() const { return ops_; }
  const OpTimes& times() const { return times_; }

  // The arena is exactly that of MakeTrainingProgram or, for a task with many shapes, very nearly:
  // only the largest shapes are planned. Passes that save no bytes are left out.
  // Results are cached.
  Result<PlanSize> Of(TrainConfig config) const;
  // Finds these sizes, so that Of knows them: those of large networks two at the same time.
  void Prepare(std::span<const TrainConfig> configs) const;
  // Whether the arena has at most so many bytes; in a part of the time that Of takes.
  Result<bool> Fits(TrainConfig config, int64_t bytes) const;
  // Whether there is a plan, of whatever size: false for options that do not suit the network.
  bool CanPlan(const TrainConfig& config) const;
  // How exact a run is with the configuration's value of this lever.
  Result<std::string> ExactnessOf(const Lever& lever, const TrainConfig& config) const;

 private:
  // What is known of an arena that was only compared with other bytes.
  struct Bounds {
    std::optional<int64_t> least_enough = {};
    int64_t most_too_few = 0;
  };

  // `config` has only what arenas depend on.
  Result<PlanSize> Plan(const TrainConfig& config) const;

  mutable std::map<std::string, PlanSize> known_;  // by configuration
  mutable std::map<std::string, Bounds> compared_;
  TaskPtr task_;
  TaskPtr sized_;  // with the shapes that are planned
  const OpRegistry& ops_;
  OpTimes times_;
};

}  // namespace thimble
