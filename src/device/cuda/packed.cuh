// Elements of packed tensors (tensor/packed.h) in GPU code. Patterns begin at multiples of 16
// bytes.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/device/cuda/numbers.cuh"
#include "thimble/tensor/packed.h"

namespace thimble {

// Some neighbouring elements: a bit for each that is active, and the place in the pool of the first
// of those; the others follow it.
struct PackedGroup {
  uint32_t active = 0;
  uint32_t place = 0;
};

// Elements [element, element + kCount). Requires a multiple of kCount, which divides 32.
template <int kCount>
__device__ PackedGroup FindGroup(const PackedPlace& packed, int64_t element) {
  static_assert(kPatternWordBits % kCount == 0 && kPatternBlockWords == 8);
  const int64_t block = element / kPatternBlock;
  const uint4* halves = reinterpret_cast<const uint4*>(packed.bits) + 2 * block;
  const uint4 low = __ldg(halves);
  const uint4 high = __ldg(halves + 1);
  const uint32_t words[] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  uint32_t place = __ldg(packed.starts + block);
  const int word = static_cast<int>(element / kPatternWordBits % kPatternBlockWords);
  uint32_t own = 0;
#pragma unroll
  for (int w = 0; w < kPatternBlockWords; ++w) {
    if (w < word) place += __popc(words[w]);
    if (w == word) own = words[w];
  }
  const int bit = static_cast<int>(element % kPatternWordBits);
  place += __popc(own & ((1U << bit) - 1));
  return {own >> bit & ((1U << (kCount - 1)) * 2 - 1), place};
}

// One element as a float; 0 if it is not active.
__device__ inline float LoadElement(const PackedPlace& packed, ConstNumbers pool, int64_t element) {
  const PackedGroup group = FindGroup<1>(packed, element);
  return group.active == 0 ? 0.0F : LoadNumber(AnyPointer<const void>(pool) + group.place);
}

// Stores those of these elements that are active. Requires a multiple of kCount, likewise.
template <int kCount>
__device__ void StoreActive(const float (&numbers)[kCount], const PackedPlace& packed,
                            int64_t element, Numbers pool) {
  const PackedGroup group = FindGroup<kCount>(packed, element);
  AnyPointer<void> to = AnyPointer<void>(pool) + group.place;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    if ((group.active >> i & 1) == 0) continue;
    StoreNumber(numbers[i], to);
    to = to + 1;
  }
}

}  // namespace thimble
