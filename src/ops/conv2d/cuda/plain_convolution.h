// Convolutions of any shape on a GPU, in fp32, one sum per thread: for kernel sizes and strides
// that the tiled kernels do not accept.
#pragma once

#include <cuda_runtime_api.h>

namespace thimble {

struct PlainConvolution {
  int batch;
  int height, width, channels;              // of x
  int out_height, out_width, out_channels;  // of y
  int kernel_height, kernel_width, stride, padding;
};

// `other` is null or added to y.
void LaunchPlainForward(cudaStream_t stream, const PlainConvolution& convolution, const float* x,
                        const float* w, const float* other, float* y);
void LaunchPlainGradInput(cudaStream_t stream, const PlainConvolution& convolution, const float* w,
                          const float* dy, float* dx);
void LaunchPlainGradWeight(cudaStream_t stream, const PlainConvolution& convolution, const float* x,
                           const float* dy, float* dw);

}  // namespace thimble
