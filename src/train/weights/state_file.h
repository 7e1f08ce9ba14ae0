// Saves and loads a list of named tensors; the same list describes both directions. Used for
// weights (exchanged with PyTorch) and for checkpoints.
#pragma once

#include <span>
#include <string>

#include "thimble/base/result.h"
#include "thimble/tensor/tensor_view.h"
#include "thimble/train/weights/safetensors_header.h"
#include "thimble/train/weights/safetensors_reader.h"
#include "thimble/train/weights/tensor_layout.h"

namespace thimble {

// A tensor in the arena, with its name and layout in files.
struct StoredTensor {
  std::string name;
  TensorView view;  // convolution weights are (O, KH, KW, I); packed ones are dense in files
  FileLayout layout = FileLayout::kAsStored;
};

// What to do with tensors of the file that are not in the list. PyTorch's batch counters
// ("…num_batches_tracked", never needed) are ignored under both rules.
enum class LoadRule {
  kExact,       // they are an error
  kConvert,     // the same; numbers may have another type, and are rounded to the nearest
  kAllowExtra,  // they are ignored
};

// Writes the tensors as a safetensors file, atomically. Needs memory for the file's header and one
// output channel of a convolution weight. kBadInput for invalid names, kFailed if writing fails.
Result<void> SaveTensors(const std::string& path, std::span<const StoredTensor> tensors,
                         const TensorMetadata& metadata);

// Fills the views. Each tensor of the list must be in the file with the same type (see LoadRule)
// and (in file order) shape. All are checked before any view is written; kBadInput names the wrong
// tensor, what was found and what was expected. If reading fails in between, some views are filled.
Result<void> LoadTensors(const std::string& path, std::span<const StoredTensor> tensors,
                         LoadRule rule);
Result<void> LoadTensors(const SafetensorsReader& file, std::span<const StoredTensor> tensors,
                         LoadRule rule);

// Describes the first number that is not finite: "tensor "conv1.weight" has nan at element 17";
// empty if all are finite.
std::string FindNotFinite(std::span<const StoredTensor> tensors);

// Loads weights to start from or to evaluate. kBadInput if the file does not have exactly these
// tensors, or, with the views filled, if a number is not finite.
Result<void> LoadWeights(const std::string& path, std::span<const StoredTensor> tensors);

}  // namespace thimble
