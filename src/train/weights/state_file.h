// Saving and loading a list of named tensors through one description, so that what was saved is
// what is loaded. Used for weights (to and from PyTorch) and for checkpoints.
#pragma once

#include <span>
#include <string>

#include "thimble/base/result.h"
#include "thimble/tensor/tensor_view.h"
#include "thimble/train/weights/safetensors_header.h"
#include "thimble/train/weights/safetensors_reader.h"
#include "thimble/train/weights/tensor_layout.h"

namespace thimble {

// A tensor in the arena and what it is called and how it lies in files.
struct StoredTensor {
  std::string name;
  TensorView view;  // convolution weights are (O, KH, KW, I)
  FileLayout layout = FileLayout::kAsStored;
};

// What to do with tensors of the file that are not in the list. PyTorch's batch counters
// ("…num_batches_tracked", never needed) are ignored under both rules.
enum class LoadRule {
  kExact,       // they are an error
  kAllowExtra,  // they are ignored
};

// Writes the tensors as a safetensors file, atomically. Beyond the file's header it needs memory
// for one output channel of a convolution weight. kBadInput for unusable names, kFailed for the
// disk.
Result<void> SaveTensors(const std::string& path, std::span<const StoredTensor> tensors,
                         const TensorMetadata& metadata);

// Fills the views. Each tensor of the list must be in the file with the same type and (in file
// order) shape. Nothing is written before all are verified; kBadInput says which tensor is wrong
// and how it is there and here. If the disk fails in between, some views are filled.
Result<void> LoadTensors(const std::string& path, std::span<const StoredTensor> tensors,
                         LoadRule rule);
Result<void> LoadTensors(const SafetensorsReader& file, std::span<const StoredTensor> tensors,
                         LoadRule rule);

// "tensor "conv1.weight" has nan at element 17", for the first number that is not finite, as a run
// that diverges leaves them behind; empty where all are.
std::string FindNotFinite(std::span<const StoredTensor> tensors);

// Weights to start from or to evaluate: exactly these tensors, all of them finite. kBadInput
// otherwise; where only a number is wrong, the views are filled.
Result<void> LoadWeights(const std::string& path, std::span<const StoredTensor> tensors);

}  // namespace thimble
