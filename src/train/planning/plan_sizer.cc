#include "thimble/train/planning/plan_sizer.h"

#include <limits>
#include <utility>

#include "thimble/plan/pipeline.h"
#include "thimble/plan/program_record.h"
#include "thimble/train/options/options.h"

namespace thimble {

namespace {

// What the arena depends on.
TrainConfig Sized(TrainConfig config) {
  for (const PassInfo& pass : OptionalPasses()) {
    if (!pass.saves_bytes) config.without.emplace(pass.name);
  }
  config.budget_bytes = 0;
  return config;
}

}  // namespace

Result<PlanSize> PlanSizer::Of(TrainConfig config) const {
  config = Sized(std::move(config));
  const std::string key = ToToml(config);
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  THIMBLE_ASSIGN_OR_RETURN(const TrainingProgram planned,
                           MakeTrainingProgram(config, sized_, ops_));
  return known_[key] = PlanSize{static_cast<int64_t>(planned.program.arena_bytes),
                                StepCost(planned.program, ops_).step_flops,
                                StepSeconds(planned.program, ops_, times_),
                                planned.main_plan().graph.nodes.size()};
}

Result<bool> PlanSizer::Fits(TrainConfig config, int64_t bytes) const {
  config = Sized(std::move(config));
  const std::string key = ToToml(config);
  if (const auto known = known_.find(key); known != known_.end()) {
    return known->second.arena_bytes <= bytes;
  }
  Bounds& bounds = compared_[key];
  if (bounds.least_enough && bytes >= *bounds.least_enough) return true;
  if (bytes <= bounds.most_too_few) return false;
  THIMBLE_ASSIGN_OR_RETURN(const TrainingProgram planned,
                           MakeTrainingProgram(config, sized_, ops_, static_cast<size_t>(bytes)));
  const auto arena_bytes = static_cast<int64_t>(planned.program.arena_bytes);
  if (arena_bytes > bytes) {
    bounds.most_too_few = bytes;
    return false;
  }
  bounds.least_enough = arena_bytes;
  return true;
}

bool PlanSizer::CanPlan(const TrainConfig& config) const {
  const Result<bool> fits = Fits(config, std::numeric_limits<int64_t>::max());
  return fits.ok() || fits.error().kind == ErrorKind::kDoesNotFit;
}

Result<std::string> PlanSizer::ExactnessOf(const Lever& lever, const TrainConfig& config) const {
  THIMBLE_ASSIGN_OR_RETURN(const Network network,
                           task_->Build(ops_, task_->FullShape(1).With(1), Mode::kTrain));
  return lever.exactness(network.graph, SettingOf(lever, config));
}

}  // namespace thimble
