// Numbers that are loaded one by one, where whole groups cannot be.
#pragma once

#include <cuda_runtime.h>

#include "thimble/device/cuda/numbers.cuh"

namespace thimble {

// Four numbers of any type; only the first `valid` exist, the others become zero. Not inlined,
// because it is rarely used and would be most of a kernel's code.
static __noinline__ __device__ float4 LoadSingly(AnyPointer<const void> from, int valid) {
  const auto at = [&](int i) { return i < valid ? LoadNumber(from + i) : 0.0F; };
  return make_float4(at(0), at(1), at(2), at(3));
}

}  // namespace thimble
