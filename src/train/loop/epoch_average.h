// The average of the weights of a run's last epochs (--average), as its last epoch is evaluated
// with and saved. The files of the epochs stay in the run folder: a run that is resumed or extended
// needs those of earlier epochs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "thimble/base/result.h"
#include "thimble/exec/executor.h"
#include "thimble/train/run_folder/run_folder.h"
#include "thimble/train/weights/safetensors_header.h"

namespace thimble {

// Epochs [first, last], counted from 1.
struct AveragedEpochs {
  int64_t first = 1;
  int64_t last = 0;  // none

  int64_t count() const { return last - first + 1; }
  bool Has(int64_t epoch) const { return first <= epoch && epoch <= last; }
};

// The last `count` epochs of a run that ends with epoch `last`; all of them if there are fewer.
inline AveragedEpochs LastEpochs(int64_t count, int64_t last) {
  if (count == 0) return {};
  return {.first = std::max<int64_t>(1, last - count + 1), .last = last};
}

// Fills the weights with the average of the epochs' files. Sparse weights keep their pattern: the
// average of a weight that was not active in an epoch counts that epoch as 0.
Result<void> LoadAverage(const RunFolder& folder, const AveragedEpochs& epochs,
                         const TensorMetadata& metadata, Executor& executor);

// Fills the weights with those of an epoch, bit for bit if the program's pattern of sparse weights
// is still that of the epoch.
Result<void> LoadEpoch(const RunFolder& folder, int64_t epoch, Executor& executor);

}  // namespace thimble
