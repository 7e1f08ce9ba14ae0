#include "thimble/train/options/update_options.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "thimble/program/techniques.h"
#include "thimble/train/options/options.h"

namespace thimble {
namespace {

// Large enough that gradients of some 1e-8 survive in fp16, which an automatic scale then finds
// out.
constexpr double kInitialScale = 4096;

bool HasGradientsInF16(const StorageTypes& types) {
  return types[StoredCategory::kGradients] == DType::kF16 ||
         types[StoredCategory::kActivationGradients] == DType::kF16;
}

// The initial scale; 0: the loss is not scaled.
Result<double> InitialScale(const TrainConfig& config) {
  const std::string& text = config.loss_scale;
  if (text == "none") return 0.0;
  if (text == "auto") {
    THIMBLE_ASSIGN_OR_RETURN(const StorageTypes types, StorageTypesOf(config));
    return HasGradientsInF16(types) ? kInitialScale : 0.0;
  }
  double scale = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), scale);
  const bool is_number = code == std::errc() && end == text.data() + text.size();
  if (!is_number || !std::isfinite(scale) || !(scale > 0)) {
    return BadInput(fmt::format("--loss-scale {}: expected auto, none or a number above 0", text));
  }
  return scale;
}

}  // namespace

Result<void> CheckOptimizer(const OptimizerSpec& optimizer) {
  for (const auto& [name, share] : {std::pair{"momentum", optimizer.momentum},
                                    {"adam-beta1", optimizer.beta1},
                                    {"adam-beta2", optimizer.beta2}}) {
    if (share < 1) continue;
    return BadInput(fmt::format("--{} {}: must be less than 1", name, share));
  }
  if (!(optimizer.epsilon > 0)) {
    return BadInput(fmt::format("--adam-epsilon {}: must be above 0", optimizer.epsilon));
  }
  if (!optimizer.nesterov) return {};
  if (optimizer.name != "sgd") {
    return BadInput(fmt::format("--nesterov: only with --optimizer sgd, not {}", optimizer.name));
  }
  if (optimizer.momentum == 0) return BadInput("--nesterov requires --momentum above 0");
  return {};
}

Result<StorageTypes> StorageTypesOf(const TrainConfig& config) {
  THIMBLE_ASSIGN_OR_RETURN(StorageTypes types,
                           ParsePrecision(ValueOf(*FindLever("precision"), config)));
  THIMBLE_TRY(ParseStore(ValueOf(*FindLever("store"), config), types));
  return types;
}

Result<UpdateSpec> UpdateSpecOf(const TrainConfig& config) {
  UpdateSpec update;
  update.optimizer = config.optimizer;
  update.clip = config.clip;
  update.seed = config.seed;
  update.largest_learning_rate = config.learning_rate;
  LossScaleSpec& scale = update.loss_scale;
  THIMBLE_ASSIGN_OR_RETURN(scale.initial, InitialScale(config));
  scale.interval = config.loss_scale_interval;
  scale.factor = config.loss_scale_factor;
  scale.floor = config.loss_scale_floor;
  if (!(scale.factor > 1)) {
    return BadInput(fmt::format("--loss-scale-factor {}: must be above 1", scale.factor));
  }
  if (!(scale.floor > 0)) {
    return BadInput(fmt::format("--loss-scale-floor {}: must be above 0", scale.floor));
  }
  if (scale.initial > 0 && scale.initial < scale.floor) {
    return BadInput(
        fmt::format("--loss-scale {}: is below --loss-scale-floor {}", scale.initial, scale.floor));
  }
  return update;
}

}  // namespace thimble
