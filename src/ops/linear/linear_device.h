// The GPU code of linear and its gradients: a product of matrices and a sum of rows. Classifiers
// have few outputs, so the product has ways of its own for small results.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace thimble {

struct ProductShape {
  int64_t rows, columns, depth;
};

// Element (i, j) lies at data[i * row_stride + j * column_stride].
struct StridedMatrix {
  const float* data;
  int64_t row_stride, column_stride;

  constexpr float At(int64_t row, int64_t column) const {
    return data[row * row_stride + column * column_stride];
  }
};

// out (rows, columns) = a (rows, depth) * b (depth, columns), plus bias (columns) unless it is
// null. The order of additions depends on the shape alone.
void LaunchProduct(cudaStream_t stream, const ProductShape& shape, const StridedMatrix& a,
                   const StridedMatrix& b, const float* bias, float* out);

// sums (columns) of x (rows, columns).
void LaunchColumnSums(cudaStream_t stream, int64_t rows, int64_t columns, const float* x,
                      float* sums);

}  // namespace thimble
