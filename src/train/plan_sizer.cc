#include "thimble/train/plan_sizer.h"

#include "thimble/base/nearly_equal_parts.h"
#include "thimble/plan/pipeline.h"
#include "thimble/plan/program_record.h"
#include "thimble/train/options.h"

namespace thimble {

int64_t SmallestScratch(TrainConfig config, FunctionRef<bool(const TrainConfig&)> works) {
  const int64_t asked_bytes = config.scratch_bytes;
  // From what direct convolutions run well with.
  for (config.scratch_bytes = 64 << 10; config.scratch_bytes < asked_bytes;
       config.scratch_bytes *= 2) {
    if (works(config)) return config.scratch_bytes;
  }
  return 0;
}

Result<PlanSize> PlanSizer::Of(TrainConfig config) const {
  for (const PassInfo& pass : OptionalPasses()) {
    if (!pass.saves_bytes) config.without.emplace(pass.name);
  }
  config.budget_bytes = 0;
  const std::string key = ToToml(config);
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  THIMBLE_ASSIGN_OR_RETURN(const TrainingProgram planned,
                           MakeTrainingProgram(config, model_, counts_, ops_));
  return known_[key] = PlanSize{static_cast<int64_t>(planned.program.arena_bytes),
                                StepCost(planned.program, ops_).step_flops,
                                planned.main_plan().graph.nodes.size()};
}

Result<std::string> PlanSizer::ExactnessOf(const Lever& lever, const LeverSetting& setting) const {
  THIMBLE_ASSIGN_OR_RETURN(const Network network, BuildNetwork(model_, ops_, 1, Mode::kTrain));
  return lever.exactness(network.graph, setting);
}

}  // namespace thimble
