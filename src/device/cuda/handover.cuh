// Synchronizes producer and consumer threads of a block through shared memory: an `mbarrier` of
// sm_80 and later.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/device/cuda/tensor_core.cuh"

namespace thimble {

// Placed in shared memory. A phase completes each time `threads` threads have arrived; their
// earlier memory accesses are then visible to the threads that waited. Every thread arrives itself:
// one lane per warp after __syncwarp was slower, and racecheck reported it as a race.
class Handover {
 public:
  // Called by one thread; a barrier must follow before others use it.
  __device__ void Make(int threads) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(SharedAddress(&state_)),
                 "r"(threads)
                 : "memory");
  }

  __device__ void Arrive() {
    asm volatile(
        "{\n"
        "  .reg .b64 ignored;\n"
        "  mbarrier.arrive.shared::cta.b64 ignored, [%0];\n"
        "}" ::"r"(SharedAddress(&state_))
        : "memory");
  }

  // Arrives at the handover that the block of this rank in the cluster has at the same place.
  __device__ void ArriveAt(int rank) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile(
        "{\n"
        "  .reg .b32 remote;\n"
        "  mapa.shared::cluster.u32 remote, %0, %1;\n"
        "  mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
        "}" ::"r"(SharedAddress(&state_)),
        "r"(rank)
        : "memory");
#endif
  }

  // Arrives when this thread's asynchronous copies so far (cp.async) have completed, without
  // waiting for them. Other memory accesses of the thread may become visible later.
  __device__ void ArriveAfterCopies() {
    asm volatile(
        "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(SharedAddress(&state_))
        : "memory");
  }

  // Waits until phase n, counted from 0, has completed; `odd` says whether n is odd. No thread may
  // be two phases ahead.
  __device__ void Wait(bool odd) {
    const uint32_t address = SharedAddress(&state_);
    while (!Passed(address, odd)) {
    }
  }

 private:
  __device__ static bool Passed(uint32_t address, bool odd) {
    uint32_t passed = 0;
    asm volatile(
        "{\n"
        "  .reg .pred done;\n"
        "  mbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n"
        "  selp.u32 %0, 1, 0, done;\n"
        "}"
        : "=r"(passed)
        : "r"(address), "r"(static_cast<uint32_t>(odd))
        : "memory");
    return passed != 0;
  }

  uint64_t state_;
};

}  // namespace thimble
