// The average of files of weights, such as those of the last epochs of a run.
#pragma once

#include <span>
#include <string>

#include "thimble/base/result.h"
#include "thimble/train/weights/safetensors_header.h"

namespace thimble {

// Writes the file `to`, whose numbers are the means of those in `paths`, rounded to their type.
// Needs memory for a piece of a tensor and the headers. kBadInput, naming the file and the tensor,
// unless all files have the same tensors of numbers.
Result<void> AverageWeights(std::span<const std::string> paths, const std::string& to,
                            const TensorMetadata& metadata);

}  // namespace thimble
