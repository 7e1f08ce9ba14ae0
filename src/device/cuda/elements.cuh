// One thread per element, or per four elements if addresses and counts allow it.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"

namespace thimble {

inline constexpr int kElementThreads = 256;
// More blocks than any GPU runs at once; each thread loops over the remaining elements.
inline constexpr int64_t kMaxElementBlocks = 8192;

template <class Body>
__global__ void __launch_bounds__(kElementThreads) ElementsKernel(Body body, int64_t count) {
  WaitForKernelsBefore();
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) body(i);
}

// Calls body(i) for 0 <= i < count on the device. `body` is copied there.
template <class Body>
void LaunchElements(cudaStream_t stream, int64_t count, const Body& body) {
  if (count == 0) return;
  const int64_t blocks = std::min((count - 1) / kElementThreads + 1, kMaxElementBlocks);
  ElementsKernel<<<static_cast<unsigned>(blocks), kElementThreads, 0, stream>>>(body, count);
  THIMBLE_CUDA_LAUNCHED();
}

// Whether 16 bytes at once can be read and written at all these addresses.
template <class... Pointers>
bool AllAligned16(Pointers... pointers) {
  return ((reinterpret_cast<uintptr_t>(pointers) % 16 == 0) && ...);
}

}  // namespace thimble
