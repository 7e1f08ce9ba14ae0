// Adds up rows of floats in a fixed order: the last step of a weight gradient.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/device/cuda/packed.cuh"

namespace thimble {

// sum[i] of `count` rows of `elements` vectors. A block has kWidth columns; it sums kHeight strands
// of rows, then adds the strands as a tree.
inline constexpr int kSumThreads = 256;
// From this many rows on, a block has many strands and few columns.
inline constexpr int kManyRows = 80;

__device__ inline float Plus(const float& a, const float& b) { return a + b; }
__device__ inline float4 Plus(const float4& a, const float4& b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

// Where the sums go: all of them, or those of active elements if `packed` says which.
struct SumTarget {
  Numbers numbers;
  PackedPlace packed;
};

__device__ inline void StoreSum(const SumTarget& sums, int64_t element, float sum) {
  if (sums.packed.is_packed()) return StoreActive<1>({sum}, sums.packed, element, sums.numbers);
  StoreNumber(sum, AnyPointer<void>(sums.numbers) + element);
}
__device__ inline void StoreSum(const SumTarget& sums, int64_t element, const float4& sum) {
  const float four[] = {sum.x, sum.y, sum.z, sum.w};
  if (sums.packed.is_packed()) return StoreActive(four, sums.packed, 4 * element, sums.numbers);
  StorePack(four, AnyPointer<void>(sums.numbers) + 4 * element);
}

template <int kHeight, class Vector>
__global__ void __launch_bounds__(kSumThreads)
    SumRowsKernel(const Vector* rows, int count, int64_t elements, SumTarget sum) {
  constexpr int kWidth = kSumThreads / kHeight;
  __shared__ Vector strands[kHeight][kWidth];
  const int64_t element = int64_t{blockIdx.x} * kWidth + threadIdx.x;
  Vector total{};
  WaitForKernelsBefore();
  if (element < elements) {
#pragma unroll 4
    for (int row = static_cast<int>(threadIdx.y); row < count; row += kHeight) {
      total = Plus(total, rows[row * elements + element]);
    }
  }
  strands[threadIdx.y][threadIdx.x] = total;
  for (int half = kHeight / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.y) >= half) continue;
    total = Plus(total, strands[threadIdx.y + half][threadIdx.x]);
    strands[threadIdx.y][threadIdx.x] = total;
  }
  if (threadIdx.y == 0 && element < elements) StoreSum(sum, element, total);
}

template <class Vector>
void LaunchSumRows(cudaStream_t stream, const Vector* rows, int count, int64_t elements,
                   const SumTarget& sum) {
  const auto launch = [&]<int kHeight>() {
    constexpr int kWidth = kSumThreads / kHeight;
    const auto blocks = static_cast<unsigned>((elements + kWidth - 1) / kWidth);
    SumRowsKernel<kHeight>
        <<<blocks, dim3(kWidth, kHeight), 0, stream>>>(rows, count, elements, sum);
    THIMBLE_CUDA_LAUNCHED();
  };
  count < kManyRows ? launch.template operator()<8>() : launch.template operator()<32>();
}

}  // namespace thimble
