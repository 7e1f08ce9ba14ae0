// The tensors of a program that files hold.
#pragma once

#include <vector>

#include "thimble/exec/executor.h"
#include "thimble/train/weights/state_file.h"

namespace thimble {

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
