#include "thimble/train/planning/plan_sizer.h"

#include "thimble/plan/pipeline.h"
#include "thimble/plan/program_record.h"
#include "thimble/train/options/options.h"

namespace thimble {

Result<PlanSize> PlanSizer::Of(TrainConfig config) const {
  for (const PassInfo& pass : OptionalPasses()) {
    if (!pass.saves_bytes) config.without.emplace(pass.name);
  }
  config.budget_bytes = 0;
  const std::string key = ToToml(config);
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  THIMBLE_ASSIGN_OR_RETURN(const TrainingProgram planned,
                           MakeTrainingProgram(config, sized_, ops_));
  return known_[key] = PlanSize{static_cast<int64_t>(planned.program.arena_bytes),
                                StepCost(planned.program, ops_).step_flops,
                                StepSeconds(planned.program, ops_, times_),
                                planned.main_plan().graph.nodes.size()};
}

bool PlanSizer::CanPlan(const TrainConfig& config) const {
  const Result<PlanSize> size = Of(config);
  return size.ok() || size.error().kind == ErrorKind::kDoesNotFit;
}

Result<std::string> PlanSizer::ExactnessOf(const Lever& lever, const TrainConfig& config) const {
  THIMBLE_ASSIGN_OR_RETURN(const Network network,
                           task_->Build(ops_, task_->FullShape(1).With(1), Mode::kTrain));
  return lever.exactness(network.graph, SettingOf(lever, config));
}

}  // namespace thimble
