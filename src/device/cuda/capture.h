// How work becomes a CUDA graph: what each of its pieces waits for.
#pragma once

#include <cuda_runtime_api.h>

#include "thimble/device/device.h"

namespace thimble {

// Enqueues the pieces on a stream that is being captured, each behind those that it must follow.
void CaptureInOrder(cudaStream_t stream, const Work& work);

}  // namespace thimble
