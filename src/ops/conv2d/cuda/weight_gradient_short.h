// The weight gradient of a convolution with factors of 16 bits. Blocks of a cluster add up their
// sums in shared memory, so that scratch holds one copy of dw per cluster instead of one per block,
// and none if one cluster per group of channels is enough.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "thimble/device/cuda/math.h"
#include "thimble/ops/conv2d/cuda/weight_gradient.h"

namespace thimble {

// The counterparts of weight_gradient.h.
bool FitsShortWeightGradient(const WeightGradient& gradient);
size_t ShortWeightGradientScratchBytes(const WeightGradient& gradient);
// `math` is the type of x and dy.
void LaunchShortWeightGradient(cudaStream_t stream, const WeightGradient& gradient, Math math,
                               const WeightGradientArrays& arrays);

}  // namespace thimble
