// How gradients become an update, from the options of a run: --optimizer, --clip, --loss-scale ….
#pragma once

#include "thimble/base/result.h"
#include "thimble/grad/update_spec.h"
#include "thimble/program/precision/storage_types.h"
#include "thimble/train/options/config.h"

namespace thimble {

// The types that --precision and --store choose, one for each category.
Result<StorageTypes> StorageTypesOf(const TrainConfig& config);

// kBadInput, naming the option, for wrong values of --momentum, --adam-beta1 ….
Result<void> CheckOptimizer(const OptimizerSpec& optimizer);

// kBadInput, naming the option, for wrong values. Techniques may change the result
// (Technique::ChangeUpdate).
Result<UpdateSpec> UpdateSpecOf(const TrainConfig& config);

}  // namespace thimble
