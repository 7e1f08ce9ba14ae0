// Adds up rows of floats in a fixed order: the last step of a weight gradient.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/ops/conv2d/cuda/sum_target.cuh"
#include "thimble/ops/conv2d/cuda/weight_gradient.h"

namespace thimble {

// The sums of `count` rows of `elements` vectors: elements of dw from `first` on. A block has
// kWidth columns; it sums kHeight strands of rows, then adds the strands as a tree.
inline constexpr int kSumThreads = 256;
// From this many rows on, a block has many strands and few columns.
inline constexpr int kManyRows = 80;

__device__ inline float Plus(const float& a, const float& b) { return a + b; }
__device__ inline float4 Plus(const float4& a, const float4& b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

__device__ inline void HandOver(float sum, const SumTarget& target, int64_t first, int64_t i) {
  HandOverSums<1>({sum}, target, first + i);
}
__device__ inline void HandOver(const float4& sum, const SumTarget& target, int64_t first,
                                int64_t i) {
  HandOverSums<4>({sum.x, sum.y, sum.z, sum.w}, target, first + 4 * i);
}

template <int kHeight, class Vector>
__global__ void __launch_bounds__(kSumThreads)
    SumRowsKernel(const Vector* rows, int count, int64_t elements, int64_t first,
                  const __grid_constant__ SumTarget target) {
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
  if (threadIdx.y == 0 && element < elements) HandOver(total, target, first, element);
}

template <class Vector>
void LaunchSumRows(cudaStream_t stream, const Vector* rows, int count, int64_t elements,
                   int64_t first, const SumTarget& target) {
  const auto launch = [&]<int kHeight>() {
    constexpr int kWidth = kSumThreads / kHeight;
    const auto blocks = static_cast<unsigned>((elements + kWidth - 1) / kWidth);
    SumRowsKernel<kHeight>
        <<<blocks, dim3(kWidth, kHeight), 0, stream>>>(rows, count, elements, first, target);
    THIMBLE_CUDA_LAUNCHED();
  };
  count < kManyRows ? launch.template operator()<8>() : launch.template operator()<32>();
}

// Adds up the copies in scratch of what a launch of a weight gradient computes, if there are
// several.
inline void SumCopies(cudaStream_t stream, const WeightGradient& g, int copies,
                      const WeightGradientArrays& arrays) {
  if (copies == 1) return;
  const int64_t elements = g.range_elements();
  const int64_t first = g.first_element();
  if (elements % 4 == 0 && first % 4 == 0) {
    LaunchSumRows(stream, reinterpret_cast<const float4*>(arrays.scratch), copies, elements / 4,
                  first, arrays.dw);
  } else {
    LaunchSumRows(stream, static_cast<const float*>(arrays.scratch), copies, elements, first,
                  arrays.dw);
  }
}

}  // namespace thimble
