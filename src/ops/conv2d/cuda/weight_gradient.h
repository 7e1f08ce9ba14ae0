// The weight gradient of a convolution on a GPU: dw[o, tap, c] = sum over pixels of dy[pixel, o] *
// x[pixel's window at tap, c]. The pixels of the batch are divided into splits, each summed by its
// own blocks into scratch; the splits are then added in order.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "thimble/ops/conv2d/cuda/math.h"
#include "thimble/tensor/number_pointer.h"

namespace thimble {

// Plain numbers, passed to the GPU by value.
struct WeightGradient {
  int batch;
  int height, width, channels;              // of x
  int out_height, out_width, out_channels;  // of dy
  int kernel;                               // 1 or 3, square
  int stride, padding;

  size_t elements() const { return static_cast<size_t>(out_channels) * kernel * kernel * channels; }
};

// All floats for fp32, otherwise of any type: sums are fp32, rounded once when they are stored.
struct WeightGradientArrays {
  ConstNumbers x;
  ConstNumbers dy;
  Numbers dw;
  PackedPlace packed;  // of dw, if it is packed: only active elements are stored
  float* scratch;
};

// Whether the kernel's size is supported and a tile fits into shared memory.
bool FitsWeightGradient(const WeightGradient& gradient);
// Bytes of scratch: one copy of dw per split; 0 if there is only one split.
size_t WeightGradientScratchBytes(const WeightGradient& gradient);
// Factors are rounded to TF32 or multiplied unrounded; sums are fp32. Requires that it fits.
void LaunchWeightGradient(cudaStream_t stream, const WeightGradient& gradient, Math math,
                          const WeightGradientArrays& arrays);

}  // namespace thimble
