#include "thimble/plan/layer_record.h"

#include <algorithm>
#include <map>

namespace thimble {
namespace {

// Layers by name, in the order of their first use.
class Layers {
 public:
  LayerRecord& At(const std::string& name) {
    const auto [found, added] = indices_.emplace(name, layers_.size());
    if (added) layers_.push_back({name, {}, 0, 0});
    return layers_[found->second];
  }
  // Adds the arithmetic of `runs` runs.
  void AddFlops(const PlanRecord& plan, int64_t runs) {
    for (const StepRecord& step : plan.steps) {
      LayerRecord& layer = At(step.layer);
      layer.step_flops += runs * step.flops;
      if (step.phase == Name(Phase::kForward)) layer.forward_flops += runs * step.flops;
    }
  }
  void AddPeak(const PlanRecord& plan) {
    const size_t peak_step = Account(plan).peak_step;
    for (const Holding& holding : plan.holdings) {
      if (!holding.live.Contains(peak_step)) continue;
      At(holding.layer).at_peak[static_cast<size_t>(holding.category)] += holding.size_bytes;
    }
  }
  // What belongs to no layer comes last.
  std::vector<LayerRecord> Take() && {
    std::stable_partition(layers_.begin(), layers_.end(),
                          [](const LayerRecord& layer) { return !layer.name.empty(); });
    return std::move(layers_);
  }

 private:
  std::map<std::string, size_t> indices_;
  std::vector<LayerRecord> layers_;
};

}  // namespace

std::vector<LayerRecord> LayersOf(const PlanRecord& plan) {
  Layers layers;
  layers.AddFlops(plan, 1);
  layers.AddPeak(plan);
  return std::move(layers).Take();
}

std::vector<LayerRecord> LayersOf(const ProgramRecord& program) {
  Layers layers;
  for (const PlanRecord& plan : program.plans) {
    if (plan.runs_per_step > 0) layers.AddFlops(plan, plan.runs_per_step);
  }
  layers.AddPeak(program.plans.front());
  return std::move(layers).Take();
}

}  // namespace thimble
