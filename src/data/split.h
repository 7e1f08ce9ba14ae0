// Splits a training set into training and validation images.
#pragma once

#include <cstdint>
#include <memory>

#include "thimble/base/result.h"
#include "thimble/data/image_dataset.h"

namespace thimble {

struct DatasetSplit {
  std::unique_ptr<ImageDataset> train;       // the remaining images
  std::unique_ptr<ImageDataset> validation;  // the images held out
};

// `held_out` images chosen by the seed form the validation set, the others the training set; both
// read from `dataset`, which they share. BadInput unless 1 <= held_out < dataset->size().
Result<DatasetSplit> SplitDataset(std::unique_ptr<ImageDataset> dataset, int64_t held_out,
                                  uint64_t seed);

}  // namespace thimble
