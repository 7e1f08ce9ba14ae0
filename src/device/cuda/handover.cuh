// How some threads of a block hand shared memory over to others: an `mbarrier` of sm_80 and later.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/device/cuda/tensor_core.cuh"

namespace thimble {

// Lies in shared memory. It happens each time that as many threads as it was made for have arrived;
// what they did to memory before is then seen by those that waited. Each arrives for itself: one
// lane for all after __syncwarp was slower, and racecheck did not believe it.
class Handover {
 public:
  // One thread makes it; a barrier must follow before others use it.
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

  // Until it happened for the n-th time, counted from 0; `odd` says whether n is. Nobody may be two
  // times ahead.
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
