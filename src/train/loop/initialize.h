// The initial state of a run: random parameters, statistics, zero momentum.
#pragma once

#include <cstdint>
#include <vector>

#include "thimble/exec/executor.h"
#include "thimble/model/network_builder.h"
#include "thimble/train/weights/state_file.h"

namespace thimble {

// Initializes every parameter and statistic by its rule and the seed, and all optimizer state and
// accumulators with zeros.
void InitializeResidents(Executor& executor, const std::vector<InitRule>& inits, uint64_t seed);

// Views of the persistent values of all plans, in a fixed order, for files: convolution weights get
// PyTorch's layout. The host's copies are current after Executor::FetchResidents and take effect
// with StoreResidents. `with_state` adds optimizer state. Without accumulators, which are unused
// between steps.
std::vector<StoredTensor> PersistentTensors(const Executor& executor, bool with_state);

}  // namespace thimble
