// What accumulate does to one number, in GPU code: also for kernels that compute the summand
// themselves.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/device/cuda/numbers.cuh"

namespace thimble {

// Number `i` of the arrays. `first`: x is the first summand. All may have different types.
__device__ inline void AccumulateNumber(const AnyPointer<const void>& sum, bool first, float x,
                                        int64_t i, const AnyPointer<void>& next) {
  StoreNumber(first ? x : LoadNumber(sum + i) + x, next + i);
}

}  // namespace thimble
