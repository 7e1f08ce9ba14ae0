#include "thimble/train/loop/epoch_average.h"

#include <vector>

#include "thimble/train/weights/average_weights.h"
#include "thimble/train/weights/program_tensors.h"

namespace thimble {
namespace {

Result<void> LoadFile(const std::string& path, Executor& executor) {
  THIMBLE_TRY(LoadWeights(path, PersistentTensors(executor, TensorSet::kWeights)));
  executor.StoreResidents();
  return {};
}

}  // namespace

Result<void> LoadAverage(const RunFolder& folder, const AveragedEpochs& epochs,
                         const TensorMetadata& metadata, Executor& executor) {
  std::vector<std::string> paths;
  for (int64_t epoch = epochs.first; epoch <= epochs.last; ++epoch) {
    paths.push_back(folder.File(EpochWeightsName(epoch)));
  }
  // For a moment, under the name that the average will have.
  const std::string path = folder.File("weights.safetensors");
  auto averaged = AverageWeights(paths, path, metadata);
  if (!averaged.ok()) return WithContext("--average", averaged.error());
  return LoadFile(path, executor);
}

Result<void> LoadEpoch(const RunFolder& folder, int64_t epoch, Executor& executor) {
  return LoadFile(folder.File(EpochWeightsName(epoch)), executor);
}

}  // namespace thimble
