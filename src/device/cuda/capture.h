// Captures work as a CUDA graph, with the dependencies between its pieces.
#pragma once

#include <cuda_runtime_api.h>

#include "thimble/device/device.h"

namespace thimble {

// Enqueues the pieces on a stream that is being captured, each after those it must wait for.
void CaptureInOrder(cudaStream_t stream, const Work& work);

}  // namespace thimble
