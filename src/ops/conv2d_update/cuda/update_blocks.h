// Updates of arrays of which some are q8, with gradients that are finished part by part.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "thimble/ops/conv2d/cuda/sum_target.h"

namespace thimble {

struct BlocksToUpdate {
  GradientUse use;     // of kSgd
  PackedPlace packed;  // of its arrays
  // The gradients of the tensor's numbers that are stored, number i at i % ring. `ring` is a
  // multiple of kQ8BlockNumbers.
  ConstNumbers gradients;
  int ring = 0;
  int64_t elements = 0;  // of the tensor, active or not
  int64_t first = 0;     // elements whose gradients are new
  int64_t end = 0;
  uint32_t* last_word = nullptr;  // of the scratch; set to 0
};

// Updates the numbers of all blocks of q8 whose last gradient is new. So after the last part every
// number is updated; until then fewer than kQ8BlockNumbers gradients wait for the next part.
void LaunchUpdateBlocks(cudaStream_t stream, const BlocksToUpdate& blocks);

}  // namespace thimble
