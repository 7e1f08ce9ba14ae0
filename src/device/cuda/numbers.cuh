// Reads and writes stored numbers of any type as floats in GPU code: kernels compute in floats or on
// tensor cores, and a tensor is never converted as a whole. A new storage type needs a case here.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/tensor/tensor_view.h"

namespace thimble {

__device__ inline float LoadNumber(const float* from) { return *from; }
__device__ inline float LoadNumber(const F16* from) {
  return __half2float(__ushort_as_half(from->bits));
}
__device__ inline float LoadNumber(const BF16* from) {
  return __bfloat162float(__ushort_as_bfloat16(from->bits));
}

// Rounds to the nearest, ties to even; from 65,520 on f16 becomes infinite.
__device__ inline void StoreNumber(float number, float* to) { *to = number; }
__device__ inline void StoreNumber(float number, F16* to) {
  to->bits = __half_as_ushort(__float2half_rn(number));
}
__device__ inline void StoreNumber(float number, BF16* to) {
  to->bits = __bfloat16_as_ushort(__float2bfloat16_rn(number));
}

// Four at once. Requires an address that is a multiple of four numbers.
__device__ inline float4 LoadFour(const float* from) {
  return *reinterpret_cast<const float4*>(from);
}
template <class Short>
__device__ inline float4 LoadFour(const Short* from) {
  const uint2 words = *reinterpret_cast<const uint2*>(from);
  const auto* numbers = reinterpret_cast<const Short*>(&words);
  return make_float4(LoadNumber(numbers), LoadNumber(numbers + 1), LoadNumber(numbers + 2),
                     LoadNumber(numbers + 3));
}
__device__ inline void StoreFour(const float4& numbers, float* to) {
  *reinterpret_cast<float4*>(to) = numbers;
}
template <class Short>
__device__ inline void StoreFour(const float4& numbers, Short* to) {
  uint2 words;
  auto* stored = reinterpret_cast<Short*>(&words);
  StoreNumber(numbers.x, stored);
  StoreNumber(numbers.y, stored + 1);
  StoreNumber(numbers.z, stored + 2);
  StoreNumber(numbers.w, stored + 3);
  *reinterpret_cast<uint2*>(to) = words;
}

// Calls body with a value of the C++ type that stores numbers of this type: float, F16 or BF16.
template <class Body>
void WithStorage(DType type, const Body& body) {
  switch (type) {
    case DType::kF32:
      return body(float{});
    case DType::kF16:
      return body(F16{});
    case DType::kBF16:
      return body(BF16{});
    default:
      FailForOtherType(type, DType::kF32);
  }
}

}  // namespace thimble
