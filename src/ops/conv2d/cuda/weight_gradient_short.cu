// Like the kernel of floats (weight_gradient.cu), a block owns 32 output by 32 input channels of dw
// and a split of the tiles, and a warp a row of taps and some of the pixels. Tensor cores read the
// tiles transposed (ldmatrix.trans), since the inner dimension is pixels. Three tiles are in shared
// memory: one is multiplied while two are copied.
#include <cuda_runtime.h>

#include <algorithm>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/cluster.cuh"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/tensor_core.cuh"
#include "thimble/ops/conv2d/cuda/image_tile.cuh"
#include "thimble/ops/conv2d/cuda/sum_rows.cuh"
#include "thimble/ops/conv2d/cuda/weight_gradient_short.h"
#include "thimble/ops/conv2d/cuda/weight_gradient_tiling.cuh"
#include "thimble/ops/conv2d/cuda/wide_weight_gradient.h"

namespace thimble {
namespace {

// Numbers between neighbouring pixels in shared memory: groups of eight pixels in a row are then in
// different banks.
constexpr int kPitch = 40;
constexpr int kStages = 3;

// How blocks share the tiles.
struct Sharing {
  int cluster_blocks;  // whose sums are added in shared memory
  int clusters;        // along the tiles; each has a copy of dw in scratch if there are several
};

// Depends on the shape alone. A copy in scratch costs memory and a second kernel, so that there is
// only one if it keeps nearly all of a large GPU busy; several are no more than the longest share
// of tiles needs, which is at least three.
Sharing SharingOf(const Tiling& t) {
  // An H200 runs 32 clusters of eight blocks at once, fewer than its 264 places for blocks.
  constexpr int kMostBlocks = 240;
  constexpr int kEnoughBlocks = 128;
  const int64_t groups = int64_t{t.out_groups} * t.in_groups;
  int cluster_blocks = kMaxClusterBlocks;
  while (cluster_blocks > 1 &&
         (cluster_blocks * groups > kMostBlocks || cluster_blocks > t.tiles)) {
    cluster_blocks /= 2;
  }
  const int64_t blocks = cluster_blocks * groups;
  if (blocks >= kEnoughBlocks) return {cluster_blocks, 1};
  const auto tiles_at_once = [&](int64_t clusters) { return clusters * cluster_blocks; };
  const auto quotient = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  const int64_t share =
      std::max<int64_t>(3, quotient(t.tiles, tiles_at_once(kMostBlocks / blocks)));
  return {cluster_blocks,
          static_cast<int>(std::max<int64_t>(1, quotient(t.tiles, tiles_at_once(share))))};
}

// The sums of a block in shared memory, [output channel][tap][input channel]. Rows of output
// channels are shifted by eight banks.
template <class C>
struct Slab {
  static constexpr int kRow = C::kTaps * C::kTaps * C::kIn;
  static constexpr int kRowPitch = kRow + 8;
  static constexpr size_t kBytes = size_t{C::kOut} * kRowPitch * sizeof(float);
  static constexpr int kFours = C::kOut * kRow / 4;
};

int TileNumbers(const Tiling& t) { return (t.rows * t.columns + t.area.pixels()) * kPitch; }

template <class C>
size_t SharedBytes(const Tiling& t) {
  return std::max(kStages * sizeof(typename C::Number) * TileNumbers(t), Slab<C>::kBytes);
}

// Adds the products of this warp's share of a tile, 16 pixels at a time. `row` is its row of taps,
// `turn` its turn.
template <class C>
__device__ void MultiplyTile(const WeightGradient& g, const Tiling& t,
                             const typename C::Number* tile, int row, int turn, WarpSums<C>& sums) {
  using Number = typename C::Number;
  const auto bytes = [](int numbers) { return static_cast<uint32_t>(numbers * sizeof(Number)); };
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int pixels = t.rows * t.columns;
  const int line_bits = t.column_bits + 3;
  const uint32_t dy =
      SharedAddress(tile + RowOfLaneTransposedA(lane) * kPitch + ColumnOfLaneTransposedA(lane));
  const uint32_t x = SharedAddress(tile + pixels * kPitch + ColumnOfLaneTransposedB(lane));
#pragma unroll 2
  for (int step = turn; step < pixels / 16; step += C::kTurns) {
    TensorCoreA a[C::kBlocksM];
#pragma unroll
    for (int m = 0; m < C::kBlocksM; ++m) {
      LoadTransposedA(dy + bytes(step * 16 * kPitch + m * 16), a[m]);
    }
    const int pixel = step * 16 + RowOfLaneTransposedB(lane);
    const int line = pixel >> line_bits;
    const int column = pixel - (line << line_bits);
    const uint32_t first =
        x + bytes(((line * g.stride + row) * t.area.columns + column * g.stride) * kPitch);
#pragma unroll
    for (int tap = 0; tap < C::kTaps; ++tap) {
#pragma unroll
      for (int n = 0; n < C::kBlocksN; n += 2) {
        // With 8 input channels, the second block is not used.
        TensorCoreB b[2];
        LoadTwoTransposedB(first + bytes(tap * kPitch + n * 8), b[0], b[1]);
#pragma unroll
        for (int i = 0; i < std::min(2, C::kBlocksN); ++i) {
#pragma unroll
          for (int m = 0; m < C::kBlocksM; ++m) {
            MultiplyAdd<Number>(a[m], b[i], sums.values[tap][m][n + i]);
          }
        }
      }
    }
  }
}

// Adds up the sums of the block's warps, in the order of their turns.
template <class C>
__device__ void CollectSums(int row, int turn, const WarpSums<C>& sums, float* slab) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int now = 0; now < C::kTurns; ++now) {
    if (turn == now) {
#pragma unroll
      for (int i = 0; i < C::kTaps * C::kBlocksM * C::kBlocksN * 2; ++i) {
        const int half = i % 2;
        const int n = i / 2 % C::kBlocksN;
        const int m = i / 2 / C::kBlocksN % C::kBlocksM;
        const int tap = i / 2 / C::kBlocksN / C::kBlocksM;
        const float* pair = &sums.values[tap][m][n][2 * half];
        auto* to =
            reinterpret_cast<float2*>(slab + (m * 16 + half * 8 + lane / 4) * Slab<C>::kRowPitch +
                                      (row * C::kTaps + tap) * C::kIn + n * 8 + lane % 4 * 2);
        const float2 before = now == 0 ? make_float2(0, 0) : *to;
        *to = make_float2(before.x + pair[0], before.y + pair[1]);
      }
    }
    __syncthreads();
  }
}

// Adds up the sums of the cluster's blocks, in order; each block stores a part of the result.
template <class C>
__device__ void StoreClusterSums(const WeightGradient& g, int cluster_blocks, const float* slab,
                                 const SumTarget& target, int64_t first) {
  const int rank = static_cast<int>(blockIdx.x) % cluster_blocks;
  const int first_out = g.first_out + static_cast<int>(blockIdx.y) * C::kOut;
  const int first_in = static_cast<int>(blockIdx.z) * C::kIn;
  SyncCluster();
  for (int four = rank * C::kThreads + static_cast<int>(threadIdx.x); four < Slab<C>::kFours;
       four += cluster_blocks * C::kThreads) {
    const int out = four / (Slab<C>::kRow / 4);
    const int place = four % (Slab<C>::kRow / 4) * 4;
    float4 sum = LoadFromClusterBlock(slab + out * Slab<C>::kRowPitch + place, 0);
    for (int block = 1; block < cluster_blocks; ++block) {
      sum = Plus(sum, LoadFromClusterBlock(slab + out * Slab<C>::kRowPitch + place, block));
    }
    const int in = first_in + place % C::kIn;
    if (first_out + out >= g.end_out || in >= g.channels) continue;
    const int64_t index =
        first +
        (static_cast<int64_t>(first_out + out) * C::kTaps * C::kTaps + place / C::kIn) *
            g.channels +
        in;
    const float numbers[] = {sum.x, sum.y, sum.z, sum.w};
    if (g.channels % 4 == 0) {
      HandOverSums(numbers, target, index);
      continue;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (in + i >= g.channels) break;
      HandOverSums<1>({numbers[i]}, target, index + i);
    }
  }
  SyncBeforeEnd();  // until here others read this block's sums
}

// Blocks: x over splits, clusters first; y over groups of output channels, z over groups of input
// channels. If there are several clusters, the target is dense, and each has its own copy there.
template <class C>
__global__ void __launch_bounds__(C::kThreads, 2)
    ShortWeightGradientKernel(const __grid_constant__ WeightGradient g,
                              const __grid_constant__ Tiling t, int cluster_blocks,
                              ShortGroups<typename C::Number> x, ShortGroups<typename C::Number> dy,
                              const __grid_constant__ SumTarget target) {
  using Number = typename C::Number;
  using Groups = ShortGroups<Number>;
  using DyTile = ImageTile<Groups, C::kThreads, C::kOut, kPitch>;
  using XTile = ImageTile<Groups, C::kThreads, C::kIn, kPitch>;
  extern __shared__ float shared[];
  auto* tiles = reinterpret_cast<Number*>(shared);
  const int tile_numbers = (t.rows * t.columns + t.area.pixels()) * kPitch;
  const int row = static_cast<int>(threadIdx.x) / 32 / C::kTurns;
  const int turn = static_cast<int>(threadIdx.x) / 32 % C::kTurns;
  const int first = t.FirstTile(blockIdx.x);
  const int end = t.FirstTile(blockIdx.x + 1);
  const auto stage = [&](int tile) { return tiles + (tile - first) % kStages * tile_numbers; };
  const auto copy = [&](int tile) {
    if (tile < end) CopyTile<DyTile, XTile>(g, t, tile, x, dy, stage(tile));
    CommitCopies();  // also without copies: WaitForCopiesBut counts
  };

  WarpSums<C> sums;
  WaitForKernelsBefore(NextKernels::kLater);
  for (int tile = first; tile < first + kStages - 1; ++tile) copy(tile);
  for (int tile = first; tile < end; ++tile) {
    WaitForCopiesBut<kStages - 2>();
    __syncthreads();
    // All threads are done with the tile before: another one replaces it.
    copy(tile + kStages - 1);
    MultiplyTile<C>(g, t, stage(tile), row, turn, sums);
  }
  LetNextKernelsBegin();
  WaitForCopies();
  __syncthreads();
  CollectSums<C>(row, turn, sums, shared);
  StoreClusterSums<C>(g, cluster_blocks, shared, target,
                      static_cast<int>(blockIdx.x) / cluster_blocks * g.range_elements());
}

template <class C>
void Launch(cudaStream_t stream, const WeightGradient& g, int copies,
            const WeightGradientArrays& arrays) {
  using Number = typename C::Number;
  using Groups = ShortGroups<Number>;
  const auto kernel = ShortWeightGradientKernel<C>;
  static const bool allowed = [&] {
    THIMBLE_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(kMaxSharedBytes)));
    return true;
  }();
  static_cast<void>(allowed);
  Tiling t = TilingOf(g, C::kOut, C::kIn);
  const int cluster_blocks = HasClusters() ? SharingOf(t).cluster_blocks : 1;
  t.splits = copies * cluster_blocks;
  const dim3 blocks(static_cast<unsigned>(t.splits), OutGroups(g, C::kOut),
                    static_cast<unsigned>(t.in_groups));
  const Groups x{arrays.x, CopyingOf(arrays.x.type, DTypeOf<Number>(), g.channels)};
  const Groups dy{arrays.dy, CopyingOf(arrays.dy.type, DTypeOf<Number>(), g.out_channels)};
  LaunchClusters(stream, blocks, C::kThreads, SharedBytes<C>(t), cluster_blocks, kernel, g, t,
                 cluster_blocks, x, dy, TargetOfCopies(g, copies, arrays));
}

// Tilings do not depend on which type of 16 bits it is.
template <class Visit>
auto WithAnyConfig(const WeightGradient& g, const Visit& visit) {
  return WithConfig<Math::kF16, Channels::kFours>(g, visit);
}

// Copies of dw: as many as there are clusters along the tiles. The same for every GPU.
int CopiesOf(const WeightGradient& g) {
  if (const auto sharing = WideSharingOf(g)) return sharing->clusters;
  return WithAnyConfig(g,
                       [&]<class C>() { return SharingOf(TilingOf(g, C::kOut, C::kIn)).clusters; });
}

}  // namespace

bool FitsShortWeightGradient(const WeightGradient& gradient) {
  return FitsBlocks(gradient) && WithAnyConfig(gradient, [&]<class C>() {
           return FitsTiles(TilingOf(gradient, C::kOut, C::kIn)) &&
                  SharedBytes<C>(TilingOf(gradient, C::kOut, C::kIn)) <= kMaxSharedBytes;
         });
}

size_t ShortWeightGradientScratchBytes(const WeightGradient& gradient) {
  const int copies = CopiesOf(gradient);
  return copies > 1 ? static_cast<size_t>(copies * gradient.range_elements()) * sizeof(float) : 0;
}

void LaunchShortWeightGradient(cudaStream_t stream, const WeightGradient& gradient, Math math,
                               const WeightGradientArrays& arrays) {
  const int copies = CopiesOf(gradient);
  auto sharing = WideSharingOf(gradient);
  // Blocks of fewer columns, which add in the same order, if the others would compute too many.
  if (sharing && gradient.end_out - gradient.first_out <= 64) sharing->columns = 64;
  if (!sharing || !LaunchWideWeightGradient(stream, gradient, *sharing, math, arrays)) {
    const auto launch = [&]<class C>() { Launch<C>(stream, gradient, copies, arrays); };
    if (math == Math::kF16) {
      WithConfig<Math::kF16, Channels::kFours>(gradient, launch);
    } else {
      WithConfig<Math::kBF16, Channels::kFours>(gradient, launch);
    }
  }
  SumCopies(stream, gradient, copies, arrays);
}

}  // namespace thimble
