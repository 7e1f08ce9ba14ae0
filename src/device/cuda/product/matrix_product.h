// Products of matrices on a GPU: result = (A * B transposed + other) * factor + bias.
//
//   MatrixProduct product{.rows = r, .columns = n, .inner = f,
//                         .a = {x}, .b = {w}, .result = y, .bias = b};
//   LaunchMatrixProduct(stream, product, Math::kTf32);   // y (r, n) = x (r, f) * w (n, f)^T + b
//
// On tensor cores, factors that are stored in the same type of 16 bits are multiplied as they are;
// all others are rounded to TF32, or multiplied in fp32 on the ordinary units. Sums are fp32 and
// rounded once, when they are stored; their order depends on the shape and the GPU's architecture.
// No scratch memory is needed.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "thimble/device/cuda/math.h"
#include "thimble/tensor/number_pointer.h"

namespace thimble {

// A matrix without gaps whose element (i, k) belongs to row or column i of the result and to place
// k of the inner dimension.
struct ProductFactor {
  ConstNumbers numbers;
  bool lines_across = false;  // neighbours in memory differ in i, not in k
};

struct MatrixProduct {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t inner = 0;
  ProductFactor a;                // (rows, inner)
  ProductFactor b;                // (columns, inner)
  Numbers result;                 // (rows, columns), without gaps
  ConstNumbers bias = {};         // (columns), added to each row; null: nothing
  ConstNumbers other = {};        // (rows, columns); null: nothing. May be the result
  const float* factor = nullptr;  // on the device; null: 1
};

// Whether all sizes are small enough: tiles are counted in 32 bits.
bool FitsMatrixProduct(int64_t rows, int64_t columns, int64_t inner);

// Requires FitsMatrixProduct. kF16 and kBF16 require that both factors are stored in that type;
// kTf32 and kFp32 take any types.
void LaunchMatrixProduct(cudaStream_t stream, const MatrixProduct& product, Math math);

}  // namespace thimble
