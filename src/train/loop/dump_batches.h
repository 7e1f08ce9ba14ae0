// Writes images as the network will see them, for comparisons with other programs.
#pragma once

#include <cstdint>
#include <string>

#include "thimble/base/result.h"
#include "thimble/data/image_dataset.h"
#include "thimble/train/options/config.h"

namespace thimble {

// A safetensors file with "images" u8 (steps, B, H, W, C) and "labels" i32 (steps, B): the first
// steps of a training with this configuration. Requires that these are full batches.
Result<void> DumpBatches(const TrainConfig& config, const ImageData& data, int64_t num_steps,
                         const std::string& path);

// A safetensors file with "images" u8 (N, H, W, C) and "labels" i32 (N): the whole data set, in
// order, as evaluation reads it.
Result<void> DumpImages(const ImageDataset& dataset, const std::string& path);

}  // namespace thimble
