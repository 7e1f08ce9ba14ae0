// Sums of the columns of a matrix on a GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "thimble/tensor/number_pointer.h"

namespace thimble {

// sums (columns) of x (rows, columns); x of f32, f16 or bf16. The terms are added in doubles, in an
// order that depends on the shape alone.
void LaunchColumnSums(cudaStream_t stream, int64_t rows, int64_t columns, ConstNumbers x,
                      Numbers sums);

}  // namespace thimble
