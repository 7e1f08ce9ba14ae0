// Forward convolutions and input gradients of many channels on sm_90, with factors of 16 bits.
#pragma once

#include <cuda_runtime_api.h>

#include "thimble/device/cuda/math.h"
#include "thimble/ops/conv2d/cuda/tap_convolution.h"

namespace thimble {

// Launches the convolution and returns true, or returns false if another kernel is better or this
// one is not possible for this call or GPU. Sums are fp32, rounded once when they are stored; their
// order depends on the shape alone.
bool LaunchWideConvolution(cudaStream_t stream, const TapConvolution& convolution, Math math,
                           const TapArrays& arrays);

}  // namespace thimble
