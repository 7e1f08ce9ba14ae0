// A block computes 128 rows by kColumns columns. A part of the inner dimension is 64 places: the
// copy engine reads boxes of both factors.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/device/cuda/product/factor_map.cuh"
#include "thimble/device/cuda/product/pair_matrix_product.h"
#include "thimble/device/cuda/product/product_target.cuh"
#include "thimble/device/cuda/product/short_tile.cuh"
#include "thimble/device/cuda/product/wide_matrix_product.h"
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

// Blocks: x over tiles of rows, the blocks of a cluster first; y over tiles of columns. `is_short`:
// clusters have one block, and the target is a ShortTarget.
template <class P>
__global__ void __launch_bounds__(kLaunchBound, 2)
    WideMatrixProductKernel(int inner, int cluster_blocks, const __grid_constant__ CUtensorMap a,
                            const __grid_constant__ CUtensorMap b,
                            const __grid_constant__ product::Target target, bool is_short) {
#if THIMBLE_HAS_WARPGROUPS
  extern __shared__ float shared[];
  __shared__ Ring ring;
  __shared__ float bias[P::kColumns];
  if (threadIdx.x == 0) {
    PrefetchMap(a);
    PrefetchMap(b);
  }
  ring.Make();
  float* slots = AlignedShared(shared);
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
  const ShortTarget short_target = {target.result.data, target.bias, target.rows, target.columns};
  WaitForKernelsBefore(NextKernels::kLater);
  if (is_short) LoadBias<P::kColumns>(short_target, first_column, bias);
  MultiplyParts<P>(ring, SharedAddress(slots), range.count, load, next_is_whole, sums);
  LetNextKernelsBegin();
  __syncthreads();  // no slot is read any more
  if (is_short) {
    using Number = typename P::Number;
    StoreShortTile<Number, P::kColumns>(short_target, first_row, first_column, bias,
                                        reinterpret_cast<Number*>(slots), sums);
    return;
  }
  constexpr int kPitch = kMatrixPitch<P::kColumns>;
  ForEachPair<P::kColumns>([&](int row, int column, int i) {
    *reinterpret_cast<float2*>(slots + row * kPitch + column) = make_float2(sums[i], sums[i + 1]);
  });
  SyncCluster();
  product::StoreTile<kThreads, kRows, P::kColumns>(target, first_row, first_column, cluster_blocks,
                                                   slots, kPitch);
  SyncBeforeEnd();  // until here others read this block's sums
#endif
}

// How a product is divided into blocks.
struct MatrixTiling {
  int columns = 0;
  int blocks = 0;  // of a cluster
};

// An estimate of a tiling's time without its launch, as EstimatedCycles, which is that of
// convolutions: boxes arrive faster than the pixels of windows.
double MatrixCycles(const MatrixProduct& product, MatrixTiling tiling) {
  constexpr int64_t kMultiprocessors = 132;
  constexpr double kCopiedBytes = 44;  // per cycle
  constexpr double kProducts = 1400;
  constexpr double kExchangedBytes = 24;
  constexpr double kExchange = 2200;
  const int64_t parts = Quotient(Quotient(product.inner, kInner), tiling.blocks);
  const int64_t blocks =
      Quotient(product.rows, kRows) * Quotient(product.columns, tiling.columns) * tiling.blocks;
  const double part = kInner * std::max(2 * (kRows + tiling.columns) / kCopiedBytes,
                                        kRows * tiling.columns / kProducts);
  const double exchange =
      tiling.blocks > 1 ? kExchange + 4 * kRows * tiling.columns / kExchangedBytes : 0;
  return static_cast<double>(Quotient(blocks, kMultiprocessors)) *
         (static_cast<double>(parts) * part + exchange);
}

MatrixTiling TilingOf(const MatrixProduct& product) {
  MatrixTiling best;
  double best_cycles = 0;
  const int64_t parts = Quotient(product.inner, kInner);
  for (const int columns : {64, 128, 160}) {
    for (const int blocks : {1, 2, 4, 8}) {
      if (blocks > 1 && parts < 2 * blocks) continue;
      const double cycles = MatrixCycles(product, {columns, blocks});
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
                 product::TargetOf(product), blocks == 1 && IsShortTarget(product));
  return true;
}

template <class Number, bool kAcrossA, bool kAcrossB>
bool LaunchWidth(cudaStream_t stream, const MatrixProduct& product, const MatrixTiling& tiling) {
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
bool LaunchForm(cudaStream_t stream, const MatrixProduct& product, const MatrixTiling& tiling) {
  if (product.a.lines_across) return LaunchWidth<Number, true, true>(stream, product, tiling);
  if (product.b.lines_across) return LaunchWidth<Number, false, true>(stream, product, tiling);
  return LaunchWidth<Number, false, false>(stream, product, tiling);
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
  const wide::MatrixTiling tiling = wide::TilingOf(product);
  if (tiling.columns == wide::kPairColumns && tiling.blocks == 1 &&
      LaunchPairMatrixProduct(stream, product, math)) {
    return true;
  }
  return math == Math::kF16 ? wide::LaunchForm<F16>(stream, product, tiling)
                            : wide::LaunchForm<BF16>(stream, product, tiling);
}

}  // namespace thimble
