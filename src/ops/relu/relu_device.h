// The GPU code of relu and relu_grad.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace thimble {

// y may be x; dx may be y or dy.
void LaunchRelu(cudaStream_t stream, const float* x, float* y, int64_t elements);
void LaunchReluGrad(cudaStream_t stream, const float* y, const float* dy, float* dx,
                    int64_t elements);

}  // namespace thimble
