// Products of large matrices of 16 bits whose blocks share what they copy, on sm_90a.
#pragma once

#include "thimble/device/cuda/product/matrix_product.h"

namespace thimble {

namespace wide {
inline constexpr int kPairColumns = 128;  // of a tile; it has 128 rows
}

// False if this product or this GPU is not suited, or if there are more tiles than multiprocessors;
// nothing is launched then. Requires factors that the copy engine can read.
bool LaunchPairMatrixProduct(cudaStream_t stream, const MatrixProduct& product, Math math);

}  // namespace thimble
