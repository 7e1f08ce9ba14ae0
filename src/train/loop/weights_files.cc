#include "thimble/train/loop/weights_files.h"

#include "thimble/program/sparsity/pack_graph.h"
#include "thimble/train/loop/rewiring.h"
#include "thimble/train/weights/program_tensors.h"

namespace thimble {
namespace {

bool IsSparse(const Executor& executor) {
  return executor.program().residents.Find(kSparsePattern) != nullptr;
}

}  // namespace

std::string SparsePath(const std::string& path) {
  const size_t name = path.rfind('/') == std::string::npos ? 0 : path.rfind('/');
  const size_t dot = path.find('.', name);
  return dot == std::string::npos ? path + ".sparse"
                                  : path.substr(0, dot) + ".sparse" + path.substr(dot);
}

Result<void> SaveWeightsOf(const Executor& executor, const std::string& path,
                           const TensorMetadata& metadata) {
  THIMBLE_TRY(SaveTensors(path, PersistentTensors(executor, TensorSet::kWeights), metadata));
  if (!IsSparse(executor)) return {};
  return SaveTensors(SparsePath(path), PersistentTensors(executor, TensorSet::kStored), metadata);
}

Result<void> LoadInitialWeights(const std::string& path, const Executor& executor) {
  THIMBLE_ASSIGN_OR_RETURN(const SafetensorsReader file, SafetensorsReader::Open(path));
  if (!IsSparse(executor) || file.Find(kSparsePattern) == nullptr) {
    return LoadWeights(path, PersistentTensors(executor, TensorSet::kWeights));
  }
  THIMBLE_TRY(LoadWeights(path, PersistentTensors(executor, TensorSet::kStored)));
  if (auto fits = CheckPatternOf(executor); !fits.ok()) return WithContext(path, fits.error());
  return {};
}

}  // namespace thimble
