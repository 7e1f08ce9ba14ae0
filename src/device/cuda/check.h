// Every CUDA call goes through here. A failure inside a step cannot be recovered: the program
// aborts and names the call, file and line. And the one question that code asks about its GPU.
#pragma once

#include <cuda_runtime_api.h>

namespace thimble {

// Aborts the program unless `code` is cudaSuccess.
void CheckCuda(cudaError_t code, const char* call, const char* file, int line);

// Whether the GPU has compute capability 9.0 or later: clusters of blocks, early launches.
bool IsHopperOrLater();

}  // namespace thimble

#define THIMBLE_CUDA(call) ::thimble::CheckCuda((call), #call, __FILE__, __LINE__)
// After each kernel launch: checks that it was accepted.
#define THIMBLE_CUDA_LAUNCHED() THIMBLE_CUDA(cudaGetLastError())
