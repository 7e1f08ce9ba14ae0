// The weight gradient of a convolution on a GPU: dw[o, tap, c] = sum over pixels of dy[pixel, o] *
// x[pixel's window at tap, c]. The pixels of the batch are divided into splits, each summed by its
// own blocks into scratch; the splits are then added in order.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "thimble/device/cuda/math.h"
#include "thimble/ops/conv2d/cuda/sum_target.h"
#include "thimble/tensor/number_pointer.h"

namespace thimble {

// Plain numbers, passed to the GPU by value.
struct WeightGradient {
  int batch;
  int height, width, channels;              // of x
  int out_height, out_width, out_channels;  // of dy
  int kernel;                               // 1 or 3, square
  int stride, padding;
  // The output channels of dw that a launch computes. They change no bit of a sum.
  int first_out = 0;
  int end_out = out_channels;

  constexpr int64_t window_elements() const { return int64_t{kernel} * kernel * channels; }
  constexpr int64_t elements() const { return out_channels * window_elements(); }
  // Those that a launch computes, and the first one.
  constexpr int64_t range_elements() const { return (end_out - first_out) * window_elements(); }
  constexpr int64_t first_element() const { return first_out * window_elements(); }
};

// All floats for fp32, otherwise of any type: sums are fp32, rounded once when they are stored.
struct WeightGradientArrays {
  ConstNumbers x;
  ConstNumbers dy;
  SumTarget dw;
  float* scratch;
};

// Where a launch with so many copies puts its sums: copy i has them from i * range_elements() on.
inline SumTarget TargetOfCopies(const WeightGradient& g, int copies,
                                const WeightGradientArrays& arrays) {
  if (copies == 1) return arrays.dw;
  return {.numbers = arrays.scratch, .first_element = g.first_element()};
}

// Whether the kernel's size is supported and a tile fits into shared memory.
bool FitsWeightGradient(const WeightGradient& gradient);
// Bytes of scratch: one copy per split of what a launch computes; 0 if there is only one split.
size_t WeightGradientScratchBytes(const WeightGradient& gradient);
// Factors are rounded to TF32 or multiplied unrounded; sums are fp32. Requires that it fits.
void LaunchWeightGradient(cudaStream_t stream, const WeightGradient& gradient, Math math,
                          const WeightGradientArrays& arrays);

}  // namespace thimble
