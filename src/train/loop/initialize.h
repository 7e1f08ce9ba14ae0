// The initial state of a run: random parameters, statistics, zero momentum.
#pragma once

#include <cstdint>
#include <vector>

#include "thimble/exec/executor.h"
#include "thimble/grad/update_spec.h"
#include "thimble/model/network_builder.h"

namespace thimble {

// Initializes every parameter and statistic by its rule and the seed, and all optimizer state and
// accumulators with zeros. Sparse weights get a random pattern.
void InitializeResidents(Executor& executor, const std::vector<InitRule>& inits, uint64_t seed,
                         const SparsitySpec& sparsity = {});

}  // namespace thimble
