// Files of weights: dense ones that other programs read and, for sparse weights, exact ones.
#pragma once

#include <string>

#include "thimble/base/result.h"
#include "thimble/exec/executor.h"
#include "thimble/train/weights/safetensors_header.h"

namespace thimble {

// "runs/a/weights.safetensors" → "runs/a/weights.sparse.safetensors".
std::string SparsePath(const std::string& path);

// Saves the weights, with zeros where sparse ones are not active. If there are sparse ones, also
// saves them as they are stored, with their pattern, under SparsePath(path). The host's copies must
// be current.
Result<void> SaveWeightsOf(const Executor& executor, const std::string& path,
                           const TensorMetadata& metadata);

// Loads weights to start from, of either kind. Of a dense file, sparse weights read those that are
// active. kBadInput if the file does not fit the program.
Result<void> LoadInitialWeights(const std::string& path, const Executor& executor);

}  // namespace thimble
