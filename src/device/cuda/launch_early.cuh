// Kernels that begin while the previous one on their stream still runs: programmatic dependent
// launch of sm_90. Work that does not depend on the previous kernel, such as reading its own first
// rows, is then already done when that ends. On older GPUs they are launched like any other kernel.
#pragma once

#include <cuda_runtime.h>

#include "thimble/device/cuda/check.h"

namespace thimble {

// In the previous kernel: the next one may begin when all blocks have called this.
__device__ inline void LetNextKernelBegin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// In the next kernel, by every thread, before it reads anything the previous one writes and before
// it writes at all.
__device__ inline void WaitForKernelBefore() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Launches such a kernel. It must call WaitForKernelBefore, and anything it reads before that call
// must have been written before the previous kernel began.
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
