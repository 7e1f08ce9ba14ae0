// A block computes 128 rows by kColumns columns. A part of the inner dimension is 64 places: the
// copy engine reads boxes of both factors.
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/device/cuda/product/product_target.cuh"
#include "thimble/device/cuda/product/wide_matrix_product.h"
#include "thimble/device/cuda/tensor_map.h"
#include "thimble/device/cuda/wide_product.cuh"

namespace thimble {
namespace wide {
namespace {

// Sums in shared memory, [row][column]. Rows are shifted by eight banks.
template <int kColumns>
inline constexpr int kMatrixPitch = kColumns + 8;

// Copies kOuter rows or columns from `outer` on, at the places from `inner` on, to a slot.
template <class F, int kOuter>
__device__ void CopyFactor(const CUtensorMap& map, int outer, int inner, uint32_t to,
                           Handover& full) {
  if constexpr (F::kAcross) {
#pragma unroll
    for (int i = 0; i < kOuter / F::kChunk; ++i) {
      CopyBox(map, outer + i * F::kChunk, inner, to + i * F::kChunkBytes, full);
    }
  } else {
    CopyBox(map, inner, outer, to, full);
  }
}

// Blocks: x over tiles of rows, the blocks of a cluster first; y over tiles of columns.
template <class P>
__global__ void __launch_bounds__(kLaunchBound, 2)
    WideMatrixProductKernel(int inner, int cluster_blocks, const __grid_constant__ CUtensorMap a,
                            const __grid_constant__ CUtensorMap b,
                            const __grid_constant__ product::Target target) {
#if THIMBLE_HAS_WARPGROUPS
  extern __shared__ float shared[];
  __shared__ Ring ring;
  ring.Make();
  float* slots = AlignedShared(shared);
  if (threadIdx.x == 0) {
    PrefetchMap(a);
    PrefetchMap(b);
  }
  const int first_row = static_cast<int>(blockIdx.x) / cluster_blocks * kRows;
  const int first_column = static_cast<int>(blockIdx.y) * P::kColumns;
  const PartRange range = PartsOf(static_cast<int>(blockIdx.x) % cluster_blocks, cluster_blocks,
                                  (inner + kInner - 1) / kInner);
  const auto load = [&, place = range.first * kInner](uint32_t to, Handover& full) mutable {
    CopyFactor<typename P::A, kRows>(a, first_row, place, to, full);
    CopyFactor<typename P::B, P::kColumns>(b, first_column, place, to + P::kBytesA, full);
    place += kInner;
  };
  const auto next_is_whole = [&, place = range.first * kInner]() mutable {
    const bool is_whole = inner - place > kInner / 2;
    place += kInner;
    return is_whole;
  };
  WarpgroupSums<P::kColumns> sums;
  WaitForKernelsBefore(NextKernels::kLater);
  MultiplyParts<P>(ring, SharedAddress(slots), range.count, load, next_is_whole, sums);
  LetNextKernelsBegin();
  __syncthreads();  // no slot is read any more
  constexpr int kPitch = kMatrixPitch<P::kColumns>;
  ForEachPair<P::kColumns>([&](int row, int column, int i) {
    *reinterpret_cast<float2*>(slots + row * kPitch + column) = make_float2(sums[i], sums[i + 1]);
  });
  SyncCluster();
  product::StoreTile<kThreads, kRows, P::kColumns>(target, first_row, first_column, cluster_blocks,
                                                   slots, kPitch);
  SyncCluster();  // until here others read this block's sums
#endif
}

// A factor of outer x inner numbers, of which boxes hold `outer_box` rows or columns.
CUtensorMap MapOf(const ProductFactor& factor, int64_t outer, int64_t inner, int outer_box) {
  const auto lines = static_cast<uint64_t>(factor.lines_across ? inner : outer);
  const auto numbers = static_cast<uint64_t>(factor.lines_across ? outer : inner);
  const auto box = static_cast<uint32_t>(outer_box);
  const std::array<uint32_t, 2> sides = {factor.lines_across ? box : kInner,
                                         factor.lines_across ? kInner : box};
  return MapOfBoxes(factor.numbers.data, factor.numbers.type, std::array{numbers, lines}, sides);
}

// How a product is divided into blocks.
struct MatrixTiling {
  int columns = 0;
  int blocks = 0;  // of a cluster
};

int64_t Quotient(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The fastest tiling of this shape by EstimatedCycles.
MatrixTiling TilingOf(const MatrixProduct& product) {
  MatrixTiling best;
  double best_cycles = 0;
  const auto parts = static_cast<int>(Quotient(product.inner, kInner));
  for (const int columns : {64, 128, 160}) {
    for (const int blocks : {1, 2, 4, 8}) {
      if (blocks > 1 && parts < 2 * blocks) continue;
      const int64_t tiles = Quotient(product.rows, kRows) * Quotient(product.columns, columns);
      const double cycles = EstimatedCycles(columns, tiles * blocks,
                                            static_cast<int>(Quotient(parts, blocks)), blocks);
      if (best.columns != 0 && cycles >= best_cycles) continue;
      best = {columns, blocks};
      best_cycles = cycles;
    }
  }
  return best;
}

template <class P>
bool LaunchMatrix(cudaStream_t stream, const MatrixProduct& product, int blocks) {
  const auto kernel = WideMatrixProductKernel<P>;
  static const bool is_there = Prepare(kernel, kSharedBytes<P>);
  if (!is_there) return false;
  const CUtensorMap a =
      MapOf(product.a, product.rows, product.inner, P::A::kAcross ? P::A::kChunk : kRows);
  const CUtensorMap b =
      MapOf(product.b, product.columns, product.inner, P::B::kAcross ? P::B::kChunk : P::kColumns);
  const auto rows = static_cast<unsigned>(Quotient(product.rows, kRows));
  const auto columns = static_cast<unsigned>(Quotient(product.columns, P::kColumns));
  LaunchClusters(stream, dim3(rows * static_cast<unsigned>(blocks), columns), kThreads,
                 kSharedBytes<P>, blocks, kernel, static_cast<int>(product.inner), blocks, a, b,
                 product::TargetOf(product));
  return true;
}

template <class Number, bool kAcrossA, bool kAcrossB>
bool LaunchWidth(cudaStream_t stream, const MatrixProduct& product) {
  const MatrixTiling tiling = TilingOf(product);
  const auto launch = [&]<int kColumns>() {
    using A = FactorShape<kInner, kAcrossA>;
    using B = FactorShape<kAcrossB && kColumns % 64 != 0 ? 32 : 64, kAcrossB>;
    return LaunchMatrix<Product<Number, kColumns, A, B>>(stream, product, tiling.blocks);
  };
  if (tiling.columns == 64) return launch.template operator()<64>();
  if (tiling.columns == 128) return launch.template operator()<128>();
  return launch.template operator()<160>();
}

template <class Number>
bool LaunchForm(cudaStream_t stream, const MatrixProduct& product) {
  if (product.a.lines_across) return LaunchWidth<Number, true, true>(stream, product);
  if (product.b.lines_across) return LaunchWidth<Number, false, true>(stream, product);
  return LaunchWidth<Number, false, false>(stream, product);
}

// The copy engine reads lines that begin at multiples of 16 bytes.
bool CanBeMapped(const ProductFactor& factor, int64_t outer, int64_t inner) {
  return (factor.lines_across ? outer : inner) % 8 == 0 &&
         reinterpret_cast<uintptr_t>(factor.numbers.data) % 16 == 0;
}

}  // namespace
}  // namespace wide

bool LaunchWideMatrixProduct(cudaStream_t stream, const MatrixProduct& product, Math math) {
  constexpr int64_t kFewest = 48;  // of each dimension; with fewer, most of a tile is empty
  if (!IsShort(math) || !wide::CanBeMapped(product.a, product.rows, product.inner) ||
      !wide::CanBeMapped(product.b, product.columns, product.inner)) {
    return false;
  }
  if (std::min({product.rows, product.columns, product.inner}) < kFewest) return false;
  return math == Math::kF16 ? wide::LaunchForm<F16>(stream, product)
                            : wide::LaunchForm<BF16>(stream, product);
}

}  // namespace thimble
