// Edges of a CUDA graph across which a kernel begins before the previous one has ended.
#pragma once

#include <cuda_runtime_api.h>

namespace thimble {

// Whether the GPU can begin a kernel early: sm_90 and later.
bool HasEarlyLaunch();

// Makes the edges between kernels early ones, if the GPU has them. All kernels of the graph must
// call WaitForKernelsBefore (launch_early.cuh). Edges from or to copies stay as they are.
void LetKernelsBeginEarly(cudaGraph_t graph);

}  // namespace thimble
