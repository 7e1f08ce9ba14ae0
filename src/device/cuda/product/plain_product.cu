// Classifiers have few outputs, so there are special variants for small results.
#include <cuda_runtime.h>

#include <array>
#include <tuple>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/device/cuda/product/plain_product.h"
#include "thimble/device/cuda/warp.cuh"

namespace thimble {
namespace {

struct ProductShape {
  int64_t rows, columns, depth;
};

// Element (i, j) is data[i * row_stride + j * column_stride].
template <class Storage>
struct StridedMatrix {
  InNumbers<Storage> data;
  int64_t row_stride, column_stride;

  __device__ float At(int64_t row, int64_t column) const {
    return LoadNumber(data + (row * row_stride + column * column_stride));
  }
};

// Where products are stored. Types of 16 bits share AnyNumber: an element is stored once, after
// many loads.
template <class Storage>
struct ProductTarget {
  OutNumbers<Storage> out;     // (rows, columns)
  InNumbers<AnyNumber> bias;   // (columns), or null
  InNumbers<AnyNumber> other;  // (rows, columns), or null
  const float* factor;         // or null
  int64_t columns;

  __device__ void Store(float sum, int64_t row, int64_t column) const {
    const int64_t at = row * columns + column;
    if (other.data != nullptr) sum += LoadNumber(other + at);
    if (factor != nullptr) sum *= *factor;
    if (bias.data != nullptr) sum += LoadNumber(bias + column);
    StoreNumber(sum, out + at);
  }
};

// ---- Small results, both operands contiguous along the depth: a warp per element.

constexpr int kDotWarps = 8;

template <class A, class B, class Out>
__global__ void __launch_bounds__(kWarpLanes* kDotWarps)
    DotProductsKernel(ProductShape shape, StridedMatrix<A> a, StridedMatrix<B> b,
                      ProductTarget<Out> target) {
  WaitForKernelsBefore();
  const int64_t element = int64_t{blockIdx.x} * kDotWarps + threadIdx.y;
  if (element >= shape.rows * shape.columns) return;  // the whole warp
  const int64_t row = element / shape.columns;
  const int64_t column = element % shape.columns;
  float sum = 0;
#pragma unroll 4
  for (int64_t k = threadIdx.x; k < shape.depth; k += kWarpLanes) {
    sum = fmaf(a.At(row, k), b.At(k, column), sum);
  }
  for (int distance = kWarpLanes / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(0xFFFFFFFF, sum, distance);
  }
  if (threadIdx.x == 0) target.Store(sum, row, column);
}

// ---- Other small results: a thread per column, the depth in parts that are added at the end.

constexpr int kDepthParts = 8;

template <class A, class B, class Out>
__global__ void __launch_bounds__(kWarpLanes* kDepthParts)
    ColumnProductsKernel(ProductShape shape, StridedMatrix<A> a, StridedMatrix<B> b,
                         ProductTarget<Out> target) {
  __shared__ float sums[kDepthParts][kWarpLanes];
  const int64_t column_groups = (shape.columns - 1) / kWarpLanes + 1;
  const int64_t row = blockIdx.x / column_groups;
  const int64_t column = blockIdx.x % column_groups * kWarpLanes + threadIdx.x;
  float sum = 0;
  WaitForKernelsBefore();
  if (column < shape.columns) {
#pragma unroll 4
    for (int64_t k = threadIdx.y; k < shape.depth; k += kDepthParts) {
      sum = fmaf(a.At(row, k), b.At(k, column), sum);
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= shape.columns) return;
  for (int part = 1; part < kDepthParts; ++part) sum += sums[part][threadIdx.x];
  target.Store(sum, row, column);
}

// ---- Large results: tiles of kTile x kTile, each thread kPerThread x kPerThread elements of one.

constexpr int kTile = 64;
constexpr int kTileDepth = 16;
constexpr int kSide = 16;  // threads along a side of the tile
constexpr int kPerThread = kTile / kSide;
constexpr int kTileThreads = kSide * kSide;

// One additional column, so that neighbours in depth are in different banks.
using TilePanel = float[kTileDepth][kTile + 1];

// panel[k][i] = element (first + i, first_k + k) of m, whose sides are count and depth; zero
// outside. Neighbouring threads read adjacent memory.
template <class Storage>
__device__ void LoadPanel(const StridedMatrix<Storage>& m, int64_t first, int64_t count,
                          int64_t first_k, int64_t depth, TilePanel& panel) {
  const bool along_depth = m.column_stride == 1;
  for (int e = threadIdx.x; e < kTile * kTileDepth; e += kTileThreads) {
    const int i = along_depth ? e / kTileDepth : e % kTile;
    const int k = along_depth ? e % kTileDepth : e / kTile;
    const bool inside = first + i < count && first_k + k < depth;
    panel[k][i] = inside ? m.At(first + i, first_k + k) : 0.0F;
  }
}

template <class A, class B, class Out>
__global__ void __launch_bounds__(kTileThreads)
    TileProductsKernel(ProductShape shape, StridedMatrix<A> a, StridedMatrix<B> b,
                       ProductTarget<Out> target) {
  __shared__ TilePanel a_panel;
  __shared__ TilePanel b_panel;
  const int64_t column_tiles = (shape.columns - 1) / kTile + 1;
  const int64_t first_row = blockIdx.x / column_tiles * kTile;
  const int64_t first_column = blockIdx.x % column_tiles * kTile;
  const int x = threadIdx.x % kSide;
  const int y = threadIdx.x / kSide;
  const StridedMatrix<B> b_transposed{b.data, b.column_stride, b.row_stride};
  float sums[kPerThread][kPerThread] = {};
  WaitForKernelsBefore();
  for (int64_t k0 = 0; k0 < shape.depth; k0 += kTileDepth) {
    LoadPanel(a, first_row, shape.rows, k0, shape.depth, a_panel);
    LoadPanel(b_transposed, first_column, shape.columns, k0, shape.depth, b_panel);
    __syncthreads();
    for (int k = 0; k < kTileDepth; ++k) {
#pragma unroll
      for (int i = 0; i < kPerThread; ++i) {
#pragma unroll
        for (int j = 0; j < kPerThread; ++j) {
          sums[i][j] = fmaf(a_panel[k][y + i * kSide], b_panel[k][x + j * kSide], sums[i][j]);
        }
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
#pragma unroll
    for (int j = 0; j < kPerThread; ++j) {
      const int64_t row = first_row + y + i * kSide;
      const int64_t column = first_column + x + j * kSide;
      if (row >= shape.rows || column >= shape.columns) continue;
      target.Store(sums[i][j], row, column);
    }
  }
}

// Fewer tiles than this leave most of a GPU idle, so the variants for small results are faster.
constexpr int64_t kFewTiles = 64;

// out (rows, columns) = a (rows, depth) * b (depth, columns), plus bias.
struct Product {
  ProductShape shape;
  StridedMatrix<AnyNumber> a;
  StridedMatrix<AnyNumber> b;
  ProductTarget<AnyNumber> target;
};

template <class Storage>
StridedMatrix<Storage> As(const StridedMatrix<AnyNumber>& m) {
  return {As<Storage>(m.data), m.row_stride, m.column_stride};
}

template <class Storage>
ProductTarget<Storage> As(const ProductTarget<AnyNumber>& target) {
  return {As<Storage>(target.out), target.bias, target.other, target.factor, target.columns};
}

template <class A, class B, class Out>
void LaunchSmallProduct(cudaStream_t stream, const Product& product) {
  const ProductShape& shape = product.shape;
  if (product.a.column_stride == 1 && product.b.row_stride == 1) {
    const int64_t blocks = (shape.rows * shape.columns - 1) / kDotWarps + 1;
    DotProductsKernel<<<static_cast<unsigned>(blocks), dim3(kWarpLanes, kDotWarps), 0, stream>>>(
        shape, As<A>(product.a), As<B>(product.b), As<Out>(product.target));
  } else {
    const int64_t blocks = shape.rows * ((shape.columns - 1) / kWarpLanes + 1);
    ColumnProductsKernel<<<static_cast<unsigned>(blocks), dim3(kWarpLanes, kDepthParts), 0,
                           stream>>>(shape, As<A>(product.a), As<B>(product.b),
                                     As<Out>(product.target));
  }
  THIMBLE_CUDA_LAUNCHED();
}

template <class Storage>
void LaunchTileProduct(cudaStream_t stream, int64_t tiles, const Product& product) {
  TileProductsKernel<<<static_cast<unsigned>(tiles), kTileThreads, 0, stream>>>(
      product.shape, As<Storage>(product.a), As<Storage>(product.b), As<Storage>(product.target));
  THIMBLE_CUDA_LAUNCHED();
}

// Calls body(a, b) with values of the types that store the operands. Besides equal types, f32 times
// 16 bits has kernels of its own: gradients of logits are f32.
template <class Body>
void WithOperandTypes(DType a, DType b, const Body& body) {
  if (a == DType::kF32) {
    WithStorage(b, [&](auto type) { body(float{}, type); });
  } else if (a == b) {
    WithStorage(b, [&](auto type) { body(type, type); });
  } else {
    body(AnyNumber{}, AnyNumber{});
  }
}

// The order of additions depends on the shape alone.
void LaunchProduct(cudaStream_t stream, const Product& product) {
  const ProductShape& shape = product.shape;
  if (shape.rows == 0 || shape.columns == 0) return;
  const std::array types{product.a.data.type, product.b.data.type, product.target.out.type};
  const int64_t tiles = ((shape.rows - 1) / kTile + 1) * ((shape.columns - 1) / kTile + 1);
  WithFloatsOrAny(types, [&](auto type) {
    using Storage = decltype(type);
    if (tiles >= kFewTiles) return LaunchTileProduct<Storage>(stream, tiles, product);
    if constexpr (std::is_same_v<Storage, float>) {
      LaunchSmallProduct<float, float, float>(stream, product);
    } else {
      WithOperandTypes(types[0], types[1], [&](auto a, auto b) {
        LaunchSmallProduct<decltype(a), decltype(b), AnyNumber>(stream, product);
      });
    }
  });
}

}  // namespace

void LaunchPlainProduct(cudaStream_t stream, const MatrixProduct& product) {
  const auto [rows, columns, inner] = std::tuple(product.rows, product.columns, product.inner);
  const bool a_across = product.a.lines_across;
  const bool b_across = product.b.lines_across;
  LaunchProduct(stream,
                {.shape = {rows, columns, inner},
                 .a = {product.a.numbers, a_across ? 1 : inner, a_across ? rows : 1},
                 .b = {product.b.numbers, b_across ? columns : 1, b_across ? 1 : inner},
                 .target = {product.result, product.bias, product.other, product.factor, columns}});
}

}  // namespace thimble
