// Weight gradients of many channels on sm_90, with factors of 16 bits.
#pragma once

#include <cuda_runtime_api.h>

#include <optional>

#include "thimble/device/cuda/math.h"
#include "thimble/ops/conv2d/cuda/weight_gradient.h"

namespace thimble {

// How blocks share the pixels.
struct WideSharing {
  int columns;         // output channels of a block
  int cluster_blocks;  // whose sums are added in shared memory
  int clusters;        // each has a copy of dw in scratch if there are several
};

// Depends on the shape alone. nullopt: another kernel is better or this one is not possible.
std::optional<WideSharing> WideSharingOf(const WeightGradient& gradient);

// Launches the gradient into dw, or the copies in scratch if there are several clusters, and
// returns true; false if the GPU does not have the instructions. x and dy must be stored in the
// type of `math`.
bool LaunchWideWeightGradient(cudaStream_t stream, const WeightGradient& gradient,
                              const WideSharing& sharing, Math math,
                              const WeightGradientArrays& arrays);

}  // namespace thimble
