#include "thimble/train/profile/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "thimble/base/function_ref.h"

namespace thimble {
namespace {

// A step of one of the plans, over all runs of that plan in a training step.
struct ProfiledStep {
  const StepRecord& record;
  int64_t runs;
  double seconds;
};

void ForEachStep(const Profile& profile, FunctionRef<void(const ProfiledStep&)> visit) {
  const auto visit_plan = [&](const PlanRecord& plan, const std::vector<double>& seconds) {
    const auto runs = static_cast<double>(plan.runs_per_step);
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      visit({plan.steps[i], plan.runs_per_step, runs * seconds[i]});
    }
  };
  visit_plan(profile.record, profile.op_seconds);
  for (const OtherPlan& other : profile.others) visit_plan(other.record, other.op_seconds);
}

// The layers of all plans of a step, with the bytes at the peak of the main one. Only the other
// plans have layers for work on the whole gradient: clipping, the loss scale.
std::vector<LayerRecord> PlannedLayers(const Profile& profile) {
  std::vector<LayerRecord> layers = LayersOf(profile.record);
  for (const OtherPlan& other : profile.others) {
    for (LayerRecord& layer : LayersOf(other.record)) {
      const auto same = [&](const LayerRecord& known) { return known.name == layer.name; };
      if (std::any_of(layers.begin(), layers.end(), same)) continue;
      layer.at_peak = {};
      layers.push_back(std::move(layer));
    }
  }
  std::stable_partition(layers.begin(), layers.end(),
                        [](const LayerRecord& layer) { return !layer.name.empty(); });
  return layers;
}

void AddStep(LayerProfile& layer, const StepRecord& step, double seconds) {
  if (step.phase == Name(Phase::kForward)) {
    layer.forward_seconds += seconds;
  } else if (step.phase == Name(Phase::kBackward)) {
    layer.backward_seconds += seconds;
  } else {
    layer.update_seconds += seconds;
  }
}

void AppendMemoryTotals(const Profile& profile, std::vector<std::string>& lines) {
  if (profile.arena_bytes != profile.allocated_bytes) {
    lines.push_back(fmt::format("arena: {} bytes planned, {} allocated", profile.arena_bytes,
                                profile.allocated_bytes));
  }
  if (profile.planned_peak_bytes != profile.measured_peak_bytes) {
    lines.push_back(fmt::format("peak: {} bytes planned, {} measured", profile.planned_peak_bytes,
                                profile.measured_peak_bytes));
  }
}

void AppendAllocations(const Profile& profile, std::vector<std::string>& lines) {
  if (profile.device_allocations_in_steps != 0) {
    lines.push_back(fmt::format("device memory was allocated or freed during steps: {} calls",
                                profile.device_allocations_in_steps));
  }
  if (profile.host_may_allocate) return;
  if (profile.heap_calls_in_steps != 0 || profile.map_calls_in_steps != 0) {
    lines.push_back(fmt::format("memory was allocated during steps: {} heap and {} mapping calls",
                                profile.heap_calls_in_steps, profile.map_calls_in_steps));
  }
}

}  // namespace

int64_t Profile::step_flops() const {
  int64_t flops = record.runs_per_step * record.step_flops;
  for (const OtherPlan& other : others) {
    flops += other.record.runs_per_step * other.record.step_flops;
  }
  return flops;
}

std::vector<OpProfile> ByOp(const Profile& profile) {
  std::map<std::string, OpProfile> by_op;
  ForEachStep(profile, [&](const ProfiledStep& step) {
    OpProfile& row = by_op[step.record.op];
    row.op = step.record.op;
    row.calls += step.runs;
    row.seconds += step.seconds;
    row.flops += step.runs * step.record.flops;
    row.moved_bytes += step.runs * step.record.moved_bytes;
  });
  std::vector<OpProfile> ops;
  for (const auto& [op, row] : by_op) ops.push_back(row);
  std::stable_sort(ops.begin(), ops.end(),
                   [](const OpProfile& a, const OpProfile& b) { return a.seconds > b.seconds; });
  return ops;
}

OpProfile Total(const std::vector<OpProfile>& ops) {
  OpProfile total;
  total.op = "all";
  for (const OpProfile& op : ops) {
    total.calls += op.calls;
    total.seconds += op.seconds;
    total.flops += op.flops;
    total.moved_bytes += op.moved_bytes;
  }
  return total;
}

std::vector<LayerProfile> ByLayer(const Profile& profile) {
  std::vector<LayerProfile> layers;
  std::map<std::string, size_t> index;
  for (LayerRecord& layer : PlannedLayers(profile)) {
    index.emplace(layer.name, layers.size());
    layer.forward_flops = layer.step_flops = 0;
    layers.push_back({.planned = std::move(layer)});
  }
  ForEachStep(profile, [&](const ProfiledStep& step) {
    LayerProfile& layer = layers[index.at(step.record.layer)];
    AddStep(layer, step.record, step.seconds);
    layer.planned.step_flops += step.runs * step.record.flops;
    if (step.record.phase == Name(Phase::kForward)) {
      layer.planned.forward_flops += step.runs * step.record.flops;
    }
  });
  const size_t peak = PlannedAccount(profile).peak_step;
  for (const Holding& held : profile.measured_holdings) {
    if (!held.live.Contains(peak)) continue;
    CategoryBytes& bytes = layers[index.at(held.layer)].measured;
    bytes[static_cast<size_t>(held.category)] += held.size_bytes;
  }
  return layers;
}

std::vector<std::string> DifferencesOf(const Profile& profile) {
  std::vector<std::string> lines;
  for (const HoldingDifference& difference :
       DifferencesOf(profile.record.holdings, profile.measured_holdings)) {
    lines.push_back(ToString(difference));
  }
  for (const OtherPlan& other : profile.others) {
    for (const HoldingDifference& difference :
         DifferencesOf(other.record.holdings, other.measured_holdings)) {
      lines.push_back(fmt::format("{}: {}", other.record.name, ToString(difference)));
    }
  }
  AppendMemoryTotals(profile, lines);
  lines.insert(lines.end(), profile.faults.begin(), profile.faults.end());
  AppendAllocations(profile, lines);
  return lines;
}

Result<void> CheckProfile(const Profile& profile) {
  const std::vector<std::string> lines = DifferencesOf(profile);
  if (lines.empty()) return {};
  return Failed(
      fmt::format("planned and measured differ: {} ({} findings)", lines.front(), lines.size()));
}

}  // namespace thimble
