// The starting point of a run: random parameters, statistics, zero momentum.
#pragma once

#include <cstdint>
#include <vector>

#include "thimble/exec/executor.h"
#include "thimble/model/network_builder.h"
#include "thimble/train/weights/state_file.h"

namespace thimble {

// Fills every parameter and statistic by its rule from the seed, and all optimizer state and
// accumulators with zeros.
void InitializeResidents(Executor& executor, const std::vector<InitRule>& inits, uint64_t seed);

// Views of the persistent values of the program's plans as the host sees them (Executor's
// FetchResidents and StoreResidents), in a fixed order, for files: convolution weights in PyTorch's
// layout. `with_state` adds the optimizer's. Accumulators have nothing to say between steps.
std::vector<StoredTensor> PersistentTensors(const Executor& executor, bool with_state);

}  // namespace thimble
