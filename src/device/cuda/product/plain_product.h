// Products of matrices of any types in fp32, on the ordinary arithmetic units.
#pragma once

#include "thimble/device/cuda/product/matrix_product.h"

namespace thimble {

// Requires a result with elements.
void LaunchPlainProduct(cudaStream_t stream, const MatrixProduct& product);

}  // namespace thimble
