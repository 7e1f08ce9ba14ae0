#include "thimble/train/planning/plan_sizer.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>
#include <vector>

#include "thimble/base/start_thread.h"
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
  THIMBLE_ASSIGN_OR_RETURN(const PlanSize size, Plan(config));
  return known_[key] = size;
}

Result<PlanSize> PlanSizer::Plan(const TrainConfig& config) const {
  THIMBLE_ASSIGN_OR_RETURN(const TrainingProgram planned,
                           MakeTrainingProgram(config, sized_, ops_));
  return PlanSize{
      static_cast<int64_t>(planned.program.arena_bytes), StepCost(planned.program, ops_).step_flops,
      StepSeconds(planned.program, ops_, times_), planned.main_plan().graph.nodes.size()};
}

void PlanSizer::Prepare(std::span<const TrainConfig> configs) const {
  // Small networks are planned fast, and two plans at once take twice the memory.
  const auto is_large = [](const auto& known) { return known.second.nodes > kQuicklySearched; };
  if (std::none_of(known_.begin(), known_.end(), is_large)) return;
  std::map<std::string, TrainConfig> unknown;
  for (const TrainConfig& config : configs) {
    TrainConfig sized = Sized(config);
    std::string key = ToToml(sized);
    if (!known_.contains(key)) unknown.emplace(std::move(key), std::move(sized));
  }
  std::vector<std::pair<const std::string*, std::optional<PlanSize>>> sizes;
  for (const auto& [key, config] : unknown) sizes.emplace_back(&key, std::nullopt);
  std::atomic<size_t> next = 0;
  const auto plan_some = [&] {
    for (size_t i = next++; i < sizes.size(); i = next++) {
      const Result<PlanSize> size = Plan(unknown.at(*sizes[i].first));
      if (size.ok()) sizes[i].second = *size;  // Of returns errors
    }
  };
  auto second = StartThread("a thread for planning", "", plan_some);
  plan_some();
  if (second.ok()) second->join();
  for (const auto& [key, size] : sizes) {
    if (size) known_.emplace(*key, *size);
  }
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
