// Sums of the columns of a matrix on a GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "thimble/tensor/number_pointer.h"

namespace thimble {

// sums (columns) of x (rows, columns); x of f32, f16 or bf16.
struct ColumnSums {
  ConstNumbers x;
  Numbers sums;
};

// For one or two matrices with the same shape and type. The terms are added in doubles, in an order
// that depends on the shape, the type, and whether the GPU has clusters.
void LaunchColumnSums(cudaStream_t stream, int64_t rows, int64_t columns,
                      std::span<const ColumnSums> matrices);

}  // namespace thimble
