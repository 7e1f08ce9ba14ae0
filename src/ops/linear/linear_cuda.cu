// Classifiers have few outputs, so the matrix product has special variants for small results.
#include <cuda_runtime.h>

#include "thimble/device/cuda/check.h"
#include "thimble/ops/linear/linear.h"

namespace thimble {
namespace {

struct ProductShape {
  int64_t rows, columns, depth;
};

// Element (i, j) is data[i * row_stride + j * column_stride].
struct StridedMatrix {
  const float* data;
  int64_t row_stride, column_stride;

  constexpr float At(int64_t row, int64_t column) const {
    return data[row * row_stride + column * column_stride];
  }
};

constexpr int kWarpLanes = 32;  // threads of a warp

__device__ float BiasAt(const float* bias, int64_t column) {
  return bias == nullptr ? 0.0F : bias[column];
}

// ---- Small results, both operands contiguous along the depth: a warp per element.

constexpr int kDotWarps = 8;

__global__ void __launch_bounds__(kWarpLanes* kDotWarps)
    DotProductsKernel(ProductShape shape, StridedMatrix a, StridedMatrix b, const float* bias,
                      float* out) {
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
  if (threadIdx.x == 0) out[element] = sum + BiasAt(bias, column);
}

// ---- Other small results: a thread per column, the depth in parts that are added at the end.

constexpr int kDepthParts = 8;

__global__ void __launch_bounds__(kWarpLanes* kDepthParts)
    ColumnProductsKernel(ProductShape shape, StridedMatrix a, StridedMatrix b, const float* bias,
                         float* out) {
  __shared__ float sums[kDepthParts][kWarpLanes];
  const int64_t column_groups = (shape.columns - 1) / kWarpLanes + 1;
  const int64_t row = blockIdx.x / column_groups;
  const int64_t column = blockIdx.x % column_groups * kWarpLanes + threadIdx.x;
  float sum = 0;
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
  out[row * shape.columns + column] = sum + BiasAt(bias, column);
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
__device__ void LoadPanel(const StridedMatrix& m, int64_t first, int64_t count, int64_t first_k,
                          int64_t depth, TilePanel& panel) {
  const bool along_depth = m.column_stride == 1;
  for (int e = threadIdx.x; e < kTile * kTileDepth; e += kTileThreads) {
    const int i = along_depth ? e / kTileDepth : e % kTile;
    const int k = along_depth ? e % kTileDepth : e / kTile;
    const bool inside = first + i < count && first_k + k < depth;
    panel[k][i] = inside ? m.At(first + i, first_k + k) : 0.0F;
  }
}

__global__ void __launch_bounds__(kTileThreads)
    TileProductsKernel(ProductShape shape, StridedMatrix a, StridedMatrix b, const float* bias,
                       float* out) {
  __shared__ TilePanel a_panel;
  __shared__ TilePanel b_panel;
  const int64_t column_tiles = (shape.columns - 1) / kTile + 1;
  const int64_t first_row = blockIdx.x / column_tiles * kTile;
  const int64_t first_column = blockIdx.x % column_tiles * kTile;
  const int x = threadIdx.x % kSide;
  const int y = threadIdx.x / kSide;
  const StridedMatrix b_transposed{b.data, b.column_stride, b.row_stride};
  float sums[kPerThread][kPerThread] = {};
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
      out[row * shape.columns + column] = sums[i][j] + BiasAt(bias, column);
    }
  }
}

// Fewer tiles than this leave most of a GPU idle, so the variants for small results are faster.
constexpr int64_t kFewTiles = 64;

// ---- Sums of columns.

constexpr int kRowParts = 32;

// In doubles: batches of tokens have thousands of rows.
__global__ void __launch_bounds__(kWarpLanes* kRowParts)
    ColumnSumsKernel(int64_t rows, int64_t columns, const float* x, float* sums) {
  __shared__ double parts[kRowParts][kWarpLanes];
  const int64_t column = int64_t{blockIdx.x} * kWarpLanes + threadIdx.x;
  double sum = 0;
  if (column < columns) {
    for (int64_t row = threadIdx.y; row < rows; row += kRowParts) sum += x[row * columns + column];
  }
  parts[threadIdx.y][threadIdx.x] = sum;
  for (int half = kRowParts / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y < half) {
      parts[threadIdx.y][threadIdx.x] += parts[threadIdx.y + half][threadIdx.x];
    }
  }
  // This thread reads only what it has added up itself.
  if (threadIdx.y == 0 && column < columns)
    sums[column] = static_cast<float>(parts[0][threadIdx.x]);
}

// out (rows, columns) = a (rows, depth) * b (depth, columns), plus bias (columns) unless it is
// null. The order of additions depends on the shape alone.
void LaunchProduct(cudaStream_t stream, const ProductShape& shape, const StridedMatrix& a,
                   const StridedMatrix& b, const float* bias, float* out) {
  if (shape.rows == 0 || shape.columns == 0) return;
  const int64_t tiles = ((shape.rows - 1) / kTile + 1) * ((shape.columns - 1) / kTile + 1);
  if (tiles >= kFewTiles) {
    TileProductsKernel<<<static_cast<unsigned>(tiles), kTileThreads, 0, stream>>>(shape, a, b, bias,
                                                                                  out);
  } else if (a.column_stride == 1 && b.row_stride == 1) {
    const int64_t blocks = (shape.rows * shape.columns - 1) / kDotWarps + 1;
    DotProductsKernel<<<static_cast<unsigned>(blocks), dim3(kWarpLanes, kDotWarps), 0, stream>>>(
        shape, a, b, bias, out);
  } else {
    const int64_t blocks = shape.rows * ((shape.columns - 1) / kWarpLanes + 1);
    ColumnProductsKernel<<<static_cast<unsigned>(blocks), dim3(kWarpLanes, kDepthParts), 0,
                           stream>>>(shape, a, b, bias, out);
  }
  THIMBLE_CUDA_LAUNCHED();
}

// sums (columns) of x (rows, columns).
void LaunchColumnSums(cudaStream_t stream, int64_t rows, int64_t columns, const float* x,
                      float* sums) {
  if (columns == 0) return;
  const int64_t blocks = (columns - 1) / kWarpLanes + 1;
  ColumnSumsKernel<<<static_cast<unsigned>(blocks), dim3(kWarpLanes, kRowParts), 0, stream>>>(
      rows, columns, x, sums);
  THIMBLE_CUDA_LAUNCHED();
}

}  // namespace

// y (B, N) = x (B, F) * w transposed (F, N) + b.
void LinearCuda::Run(const KernelCall& call) {
  const Shape& w = call.in_shape(1);  // (N, F)
  const int64_t features = w[1];
  LaunchProduct(call.stream, {call.out_shape(0)[0], w[0], features},
                {call.In<float>(0), features, 1}, {call.In<float>(1), 1, features},
                call.In<float>(2), call.Out<float>(0));
}

// dw (N, F) = dy transposed (N, B) * x (B, F).
void LinearGradWeightCuda::Run(const KernelCall& call) {
  const Shape& dw = call.out_shape(0);
  LaunchProduct(call.stream, {dw[0], dw[1], call.in_shape(1)[0]}, {call.In<float>(1), 1, dw[0]},
                {call.In<float>(0), dw[1], 1}, nullptr, call.Out<float>(0));
}

void LinearGradBiasCuda::Run(const KernelCall& call) {
  const Shape& dy = call.in_shape(0);  // (B, N)
  LaunchColumnSums(call.stream, dy[0], dy[1], call.In<float>(0), call.Out<float>(0));
}

// dx (B, F) = dy (B, N) * w (N, F).
void LinearGradInputCuda::Run(const KernelCall& call) {
  const Shape& w = call.in_shape(0);
  LaunchProduct(call.stream, {call.in_shape(1)[0], w[1], w[0]}, {call.In<float>(1), w[0], 1},
                {call.In<float>(0), w[1], 1}, nullptr, call.Out<float>(0));
}

}  // namespace thimble
