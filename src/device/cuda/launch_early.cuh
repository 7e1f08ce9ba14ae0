// Kernels that begin while those they depend on still run: programmatic dependent launch of sm_90.
// The next kernel is then ready, and has done what depends on nothing, when the previous one ends.
//
// Every kernel calls WaitForKernelsBefore, because any edge between two kernels of a graph may be
// such an early one (early_edges.h); a test finds kernels that do not. A kernel ends after its
// threads have waited, so whoever waits for it has also waited for all that it waited for.
#pragma once

#include <cuda_runtime.h>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/early_edges.h"

namespace thimble {

// The next kernels may begin when a thread of each block has called this. It must have waited: what
// was written before this kernel is then complete, so that they may read it before they wait, and
// only one generation of kernels occupies multiprocessors just to wait. As the last block must have
// begun, this kernel loses no space to them; others that run in parallel may.
__device__ inline void LetNextKernelsBegin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// When the next kernels begin.
enum class NextKernels {
  kNow,    // after the wait
  kLater,  // the kernel calls LetNextKernelsBegin: convolutions, which are long and fill the GPU
};

// Waits until the kernels that this one depends on have ended. Every thread calls it before its
// first access to global memory; only kernels of LaunchEarly may read before. Without an early
// launch it does nothing.
__device__ inline void WaitForKernelsBefore(NextKernels next = NextKernels::kNow) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  if (next == NextKernels::kNow) LetNextKernelsBegin();
}

// Launches a kernel early also if it is not part of a graph. What it reads before
// WaitForKernelsBefore must not be written by the previous kernel on the stream, and that one must
// have depended on whoever wrote it.
template <class... Parameters>
void LaunchEarly(cudaStream_t stream, dim3 blocks, dim3 threads, void (*kernel)(Parameters...),
                 const Parameters&... arguments) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = HasEarlyLaunch() ? 1 : 0;
  THIMBLE_CUDA(cudaLaunchKernelEx(&config, kernel, arguments...));
}

}  // namespace thimble
