// The GPU code of accumulate.
#pragma once

#include <cuda_runtime_api.h>

#include "thimble/ops/accumulate/accumulate_tensors.h"

namespace thimble {

void LaunchAccumulate(cudaStream_t stream, const AccumulateTensors& tensors);

}  // namespace thimble
