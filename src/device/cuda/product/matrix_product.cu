#include <algorithm>
#include <climits>

#include "thimble/device/cuda/product/matrix_product.h"
#include "thimble/device/cuda/product/plain_product.h"
#include "thimble/device/cuda/product/tile_product.cuh"
#include "thimble/device/cuda/product/wide_matrix_product.h"

namespace thimble {

bool FitsMatrixProduct(int64_t rows, int64_t columns, int64_t inner) {
  // Tiles may reach beyond the ends; tiles of columns are counted in 16 bits.
  constexpr int64_t kMostColumns = int64_t{65535} * 32;
  return std::max(rows, inner) <= INT_MAX / 16 && columns <= kMostColumns;
}

void LaunchMatrixProduct(cudaStream_t stream, const MatrixProduct& product, Math math) {
  if (product.rows == 0 || product.columns == 0) return;
  if (math == Math::kFp32) return LaunchPlainProduct(stream, product);
  if (LaunchWideMatrixProduct(stream, product, math)) return;
  if (math == Math::kF16) {
    product::LaunchTileProduct<F16>(stream, product, DType::kF16);
  } else if (math == Math::kBF16) {
    product::LaunchTileProduct<BF16>(stream, product, DType::kBF16);
  } else {
    product::LaunchTileProduct<float>(stream, product, DType::kF32);
  }
}

}  // namespace thimble
