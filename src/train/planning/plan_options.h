// What a configuration says about plans: recompute, device, scratch, kernels.
#pragma once

#include "thimble/base/result.h"
#include "thimble/plan/pipeline.h"
#include "thimble/train/options/config.h"

namespace thimble {

// kBadInput for techniques to leave out that do not exist.
Result<PlanOptions> PlanOptionsOf(const TrainConfig& config);

}  // namespace thimble
