#include "thimble/train/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace thimble {
namespace {

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
    lines.push_back(fmt::format("{} calls took or returned memory of the device during steps",
                                profile.device_allocations_in_steps));
  }
  if (profile.host_may_allocate) return;
  if (profile.heap_calls_in_steps != 0 || profile.map_calls_in_steps != 0) {
    lines.push_back(fmt::format("memory was allocated during steps: {} heap and {} mapping calls",
                                profile.heap_calls_in_steps, profile.map_calls_in_steps));
  }
}

}  // namespace

std::vector<OpProfile> ByOp(const Profile& profile) {
  std::map<std::string, OpProfile> by_op;
  for (size_t step = 0; step < profile.record.steps.size(); ++step) {
    const StepRecord& record = profile.record.steps[step];
    OpProfile& row = by_op[record.op];
    row.op = record.op;
    ++row.calls;
    row.seconds += profile.op_seconds[step];
    row.flops += record.flops;
    row.moved_bytes += record.moved_bytes;
  }
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
  for (LayerRecord& layer : LayersOf(profile.record)) {
    index.emplace(layer.name, layers.size());
    layers.push_back({.planned = std::move(layer)});
  }
  for (size_t step = 0; step < profile.record.steps.size(); ++step) {
    const StepRecord& record = profile.record.steps[step];
    AddStep(layers[index.at(record.layer)], record, profile.op_seconds[step]);
  }
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
