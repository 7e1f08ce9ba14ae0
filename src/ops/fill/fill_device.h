// The GPU code of fill.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace thimble {

void LaunchFill(cudaStream_t stream, float value, float* y, int64_t elements);

}  // namespace thimble
