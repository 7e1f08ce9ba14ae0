// Reads and writes single elements of a number array in GPU code. The branch is the same for all
// threads. Pointers to floats have the same functions, so that templates can take either.
#pragma once

#include <cstdint>

#include "thimble/device/cuda/number_array.h"
#include "thimble/device/cuda/numbers.cuh"

namespace thimble {

// Calls body with a pointer to the array's first element.
template <class Body>
__device__ auto WithNumbersOf(const ConstNumberArray& array, const Body& body) {
  if (array.type == DType::kF16) return body(static_cast<const F16*>(array.data));
  if (array.type == DType::kBF16) return body(static_cast<const BF16*>(array.data));
  return body(static_cast<const float*>(array.data));
}
template <class Body>
__device__ void WithNumbersOf(const NumberArray& array, const Body& body) {
  if (array.type == DType::kF16) {
    body(static_cast<F16*>(array.data));
  } else if (array.type == DType::kBF16) {
    body(static_cast<BF16*>(array.data));
  } else {
    body(static_cast<float*>(array.data));
  }
}

__device__ inline float NumberAt(const float* numbers, int64_t index) { return numbers[index]; }
__device__ inline float NumberAt(const ConstNumberArray& array, int64_t index) {
  return WithNumbersOf(array, [=](const auto* numbers) { return LoadNumber(numbers + index); });
}
__device__ inline void SetNumberAt(float* numbers, int64_t index, float number) {
  numbers[index] = number;
}
__device__ inline void SetNumberAt(const NumberArray& array, int64_t index, float number) {
  WithNumbersOf(array, [=](auto* numbers) { StoreNumber(number, numbers + index); });
}

}  // namespace thimble
