// Every CUDA call goes through here. What fails inside a step cannot be mended: the program stops
// and names the call, its file and line.
#pragma once

#include <cuda_runtime_api.h>

namespace thimble {

// Stops the program unless `code` is a success.
void CheckCuda(cudaError_t code, const char* call, const char* file, int line);

}  // namespace thimble

#define THIMBLE_CUDA(call) ::thimble::CheckCuda((call), #call, __FILE__, __LINE__)
// Behind each kernel launch: whether it was accepted.
#define THIMBLE_CUDA_LAUNCHED() THIMBLE_CUDA(cudaGetLastError())
