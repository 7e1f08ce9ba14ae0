// The GPU code of add.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace thimble {

void LaunchAdd(cudaStream_t stream, const float* a, const float* b, float* y, int64_t elements);

}  // namespace thimble
