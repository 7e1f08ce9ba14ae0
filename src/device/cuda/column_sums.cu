#include <cuda_runtime.h>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/column_sums.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/numbers.cuh"

namespace thimble {
namespace {

constexpr int kColumnLanes = 32;
constexpr int kRowParts = 32;

// In doubles: batches of tokens have thousands of rows.
template <class Storage>
__global__ void __launch_bounds__(kColumnLanes* kRowParts)
    ColumnSumsKernel(int64_t rows, int64_t columns, const Storage* x, OutNumbers<AnyNumber> sums) {
  __shared__ double parts[kRowParts][kColumnLanes];
  const int64_t column = int64_t{blockIdx.x} * kColumnLanes + threadIdx.x;
  double sum = 0;
  WaitForKernelsBefore();
  if (column < columns) {
    for (int64_t row = threadIdx.y; row < rows; row += kRowParts) {
      sum += LoadNumber(x + (row * columns + column));
    }
  }
  parts[threadIdx.y][threadIdx.x] = sum;
  for (int half = kRowParts / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y < half) {
      parts[threadIdx.y][threadIdx.x] += parts[threadIdx.y + half][threadIdx.x];
    }
  }
  // This thread reads only what it has added up itself.
  if (threadIdx.y == 0 && column < columns) {
    StoreNumber(static_cast<float>(parts[0][threadIdx.x]), sums + column);
  }
}

}  // namespace

void LaunchColumnSums(cudaStream_t stream, int64_t rows, int64_t columns, ConstNumbers x,
                      Numbers sums) {
  if (columns == 0) return;
  const auto blocks = static_cast<unsigned>((columns - 1) / kColumnLanes + 1);
  WithStorage(x.type, [&](auto type) {
    ColumnSumsKernel<<<blocks, dim3(kColumnLanes, kRowParts), 0, stream>>>(
        rows, columns, As<decltype(type)>(x), sums);
    THIMBLE_CUDA_LAUNCHED();
  });
}

}  // namespace thimble
