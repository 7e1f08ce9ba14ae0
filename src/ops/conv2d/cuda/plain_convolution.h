// Convolutions of any shape and any mix of storage types on a GPU, in fp32, one sum per thread: for
// calls that the tiled kernels do not accept.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "thimble/ops/conv2d/cuda/sum_target.h"
#include "thimble/tensor/number_pointer.h"

namespace thimble {

struct PlainConvolution {
  int batch;
  int height, width, channels;              // of x
  int out_height, out_width, out_channels;  // of y
  int kernel_height, kernel_width, stride, padding;
};

// Every array may store its numbers in another type; sums are fp32, rounded once when they are
// stored. `other.data` is null or added to y. `packed` is the place of w if it is packed.
void LaunchPlainForward(cudaStream_t stream, const PlainConvolution& convolution,
                        const ConstNumbers& x, const ConstNumbers& w, const PackedPlace& packed,
                        const ConstNumbers& other, const Numbers& y);
void LaunchPlainGradInput(cudaStream_t stream, const PlainConvolution& convolution,
                          const ConstNumbers& w, const PackedPlace& packed, const ConstNumbers& dy,
                          const Numbers& dx);
// Elements of dw that a launch computes.
struct ElementRange {
  int64_t first, count;
};
void LaunchPlainGradWeight(cudaStream_t stream, const PlainConvolution& convolution,
                           const ConstNumbers& x, const ConstNumbers& dy, const ElementRange& range,
                           const SumTarget& dw);

}  // namespace thimble
