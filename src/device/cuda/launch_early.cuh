// Kernels that begin while the one before them on their stream still runs: programmatic dependent
// launch of sm_90. What needs nothing of the other one, such as reading its own first rows, is then
// done when that ends. Elsewhere they are launched as any other.
#pragma once

#include <cuda_runtime.h>

#include "thimble/device/cuda/check.h"

namespace thimble {

// In the kernel before: the next one may begin when all blocks have called this.
__device__ inline void LetNextKernelBegin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// In the next one, by every thread, before it reads what the other one writes and before it writes
// anything.
__device__ inline void WaitForKernelBefore() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Launches such a kernel. It must call WaitForKernelBefore, and what it reads earlier must have
// been there when the kernel before it began.
template <class... Parameters>
void LaunchEarly(cudaStream_t stream, dim3 blocks, dim3 threads, void (*kernel)(Parameters...),
                 const Parameters&... arguments) {
  static const bool supported = [] {
    int device = 0;
    int major = 0;
    THIMBLE_CUDA(cudaGetDevice(&device));
    THIMBLE_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    return major >= 9;
  }();
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = supported ? 1 : 0;
  THIMBLE_CUDA(cudaLaunchKernelEx(&config, kernel, arguments...));
}

}  // namespace thimble
