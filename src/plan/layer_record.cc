#include "thimble/plan/layer_record.h"

#include <algorithm>
#include <map>

namespace thimble {
namespace {

// Layers by name, in the order in which they were asked for first.
class Layers {
 public:
  LayerRecord& At(const std::string& name) {
    const auto [found, added] = indices_.emplace(name, layers_.size());
    if (added) layers_.push_back({name, {}, 0, 0});
    return layers_[found->second];
  }
  std::vector<LayerRecord> Take() && { return std::move(layers_); }

 private:
  std::map<std::string, size_t> indices_;
  std::vector<LayerRecord> layers_;
};

}  // namespace

std::vector<LayerRecord> LayersOf(const PlanRecord& plan) {
  Layers layers;
  for (const StepRecord& step : plan.steps) {
    LayerRecord& layer = layers.At(step.layer);
    layer.step_flops += step.flops;
    if (step.phase == Name(Phase::kForward)) layer.forward_flops += step.flops;
  }
  const size_t peak_step = Account(plan).peak_step;
  for (const Holding& holding : plan.holdings) {
    if (!holding.live.Contains(peak_step)) continue;
    layers.At(holding.layer).at_peak[static_cast<size_t>(holding.category)] += holding.size_bytes;
  }
  std::vector<LayerRecord> records = std::move(layers).Take();
  std::stable_partition(records.begin(), records.end(),
                        [](const LayerRecord& layer) { return !layer.name.empty(); });
  return records;
}

}  // namespace thimble
