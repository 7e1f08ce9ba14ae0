#include "thimble/train/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace thimble {
namespace {

// Layers by name, in the order in which they were first asked for.
class LayerList {
 public:
  // Layers of the network are those that forward has.
  explicit LayerList(const std::vector<StepRecord>& steps) {
    for (const StepRecord& step : steps) {
      if (step.phase == Name(Phase::kForward)) At(step.layer);
    }
  }
  // What is named after a part of a layer ("conv1.weight") belongs to the layer.
  LayerProfile& At(const std::string& name) {
    std::string layer = name;
    while (!index_.contains(layer) && layer.find('.') != std::string::npos) {
      layer.resize(layer.rfind('.'));
    }
    if (!index_.contains(layer)) layer = name;
    const auto [found, is_new] = index_.emplace(layer, layers_.size());
    if (is_new) layers_.push_back({.layer = layer});
    return layers_[found->second];
  }
  std::vector<LayerProfile> Take() && { return std::move(layers_); }

 private:
  std::map<std::string, size_t> index_;
  std::vector<LayerProfile> layers_;
};

void AddStep(LayerProfile& layer, const StepRecord& step, double seconds) {
  layer.flops += step.flops;
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
  LayerList layers(profile.record.steps);
  for (size_t step = 0; step < profile.record.steps.size(); ++step) {
    const StepRecord& record = profile.record.steps[step];
    AddStep(layers.At(record.layer), record, profile.op_seconds[step]);
  }
  const size_t peak = PlannedAccount(profile).peak_step;
  for (size_t i = 0; i < profile.record.holdings.size(); ++i) {
    const Holding& planned = profile.record.holdings[i];
    if (!planned.live.Contains(peak)) continue;
    LayerProfile& layer = layers.At(planned.layer);
    const auto category = static_cast<size_t>(planned.category);
    layer.planned[category] += planned.size_bytes;
    layer.measured[category] += profile.measured_holdings[i].size_bytes;
  }
  std::vector<LayerProfile> rows = std::move(layers).Take();
  std::stable_partition(rows.begin(), rows.end(),
                        [](const LayerProfile& row) { return !row.layer.empty(); });
  return rows;
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
