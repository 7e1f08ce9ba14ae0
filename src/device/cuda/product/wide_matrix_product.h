// Products of large matrices of 16 bits by bulk copies and warpgroups, on sm_90a.
#pragma once

#include "thimble/device/cuda/product/matrix_product.h"

namespace thimble {

// False if this product or this GPU is not suited; nothing is launched then.
bool LaunchWideMatrixProduct(cudaStream_t stream, const MatrixProduct& product, Math math);

}  // namespace thimble
