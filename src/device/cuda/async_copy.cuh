// Copies from global to shared memory that a thread starts and does not wait for: `cp.async` of
// sm_80 and later.
#pragma once

#include <cuda_runtime.h>

#include "thimble/device/cuda/tensor_core.cuh"

namespace thimble {

inline constexpr int kCopiedBytes = 16;

// Copies the first `valid` of 16 bytes, and zeros after them. Both addresses are multiples of 16.
__device__ inline void CopyBytesAsync(void* to, const void* from, int valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(SharedAddress(to)), "l"(from),
               "r"(valid));
}
// Copies 16 bytes, or zeros if the group is not valid.
__device__ inline void CopyGroupAsync(void* to, const void* from, bool valid) {
  CopyBytesAsync(to, from, valid ? kCopiedBytes : 0);
}
// Copies the first `valid` of 4 bytes, and zeros after them. Both addresses are multiples of 4.
__device__ inline void CopyWordAsync(void* to, const void* from, int valid) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(SharedAddress(to)), "l"(from),
               "r"(valid));
}

// Waits until all copies of this thread have completed. Other threads see them after a barrier.
__device__ inline void WaitForCopies() { asm volatile("cp.async.wait_all;" ::: "memory"); }
// Ends a batch of copies.
__device__ inline void CommitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until all but the last kBatches batches of this thread have completed.
template <int kBatches>
__device__ void WaitForCopiesBut() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kBatches) : "memory");
}

}  // namespace thimble
