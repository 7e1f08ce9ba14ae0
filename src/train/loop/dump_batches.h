// Writes images as the network sees them, for comparison with other programs.
#pragma once

#include <cstdint>
#include <string>

#include "thimble/base/result.h"
#include "thimble/data/image_dataset.h"
#include "thimble/train/options/config.h"

namespace thimble {

// Writes a safetensors file with "images" u8 (steps, B, H, W, C) and "labels" i32 (steps, B): the
// batches of the first steps with this configuration. kBadInput if not all of them are full.
Result<void> DumpBatches(const TrainConfig& config, const ImageData& data, int64_t num_steps,
                         const std::string& path);

// Writes a safetensors file with "images" u8 (N, H, W, C) and "labels" i32 (N): the whole data set,
// in the order of evaluation.
Result<void> DumpImages(const ImageDataset& dataset, const std::string& path);

}  // namespace thimble
