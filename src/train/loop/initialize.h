// The initial state of a run: random parameters, statistics, zero momentum.
#pragma once

#include <cstdint>
#include <vector>

#include "thimble/exec/executor.h"
#include "thimble/grad/update_spec.h"
#include "thimble/model/network_builder.h"
#include "thimble/train/weights/state_file.h"

namespace thimble {

// Initializes every parameter and statistic by its rule and the seed, and all optimizer state and
// accumulators with zeros. Sparse weights get a random pattern.
void InitializeResidents(Executor& executor, const std::vector<InitRule>& inits, uint64_t seed,
                         const SparsitySpec& sparsity = {});

// What a list of tensors is for.
enum class TensorSet {
  kWeights,     // parameters and statistics; packed parameters one by one, with zeros in files
  kStored,      // the same as they are stored: pools of packed parameters, and their pattern
  kCheckpoint,  // as kStored, with optimizer state
};

// Views of the persistent values of all plans, in a fixed order, for files: convolution weights get
// PyTorch's layout. The host's copies are current after Executor::FetchResidents and take effect
// with StoreResidents. Without accumulators, which are unused between steps.
std::vector<StoredTensor> PersistentTensors(const Executor& executor, TensorSet set);

}  // namespace thimble
