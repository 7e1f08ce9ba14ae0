// A block computes 128 pairs of tap and input channel, neighbours in dw, by kColumns output
// channels, for a range of the output pixels. A part of the inner dimension is 64 pixels: the copy
// engine reads their x at each tap, and their dy.
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/tensor_map.h"
#include "thimble/device/cuda/wide_product.cuh"
#include "thimble/ops/conv2d/cuda/sum_target.cuh"
#include "thimble/ops/conv2d/cuda/wide_weight_gradient.h"

namespace thimble {
namespace wide {
namespace {

// Sums in shared memory, [output channel][tap and input channel]. Rows are shifted by four banks.
constexpr int kPitch = kRows + 4;

__host__ __device__ int NumParts(const WeightGradient& g) {
  return (g.batch * g.out_height * g.out_width + kInner - 1) / kInner;
}

WindowedImages WindowsOf(const WeightGradient& g) {
  return {g.batch,    g.height,   g.width,      g.channels, g.stride,
          -g.padding, -g.padding, g.out_height, g.out_width};
}

// Adds up the sums of the cluster's blocks; each block stores a part of the tile.
template <class P>
__device__ void StoreTile(const WeightGradient& g, int cluster_blocks, const float* sums,
                          const SumTarget& target) {
  constexpr int kFours = kRows / 4;
  const int rank = static_cast<int>(blockIdx.x) % cluster_blocks;
  const int first_row = static_cast<int>(blockIdx.y) * kRows;
  const int first_out = g.first_out + static_cast<int>(blockIdx.z) * P::kColumns;
  const int window = g.kernel * g.kernel * g.channels;
  const int64_t first =
      static_cast<int>(blockIdx.x) / cluster_blocks * g.range_elements();  // of the copy
  for (int i = rank * kThreads + static_cast<int>(threadIdx.x); i < P::kColumns * kFours;
       i += cluster_blocks * kThreads) {
    const int out = first_out + i / kFours;
    const int row = first_row + i % kFours * 4;
    if (out >= g.end_out || row >= window) continue;
    float four[4];
    AddUpFour(sums + i / kFours * kPitch + i % kFours * 4, cluster_blocks, four);
    HandOverSums(four, target, first + int64_t{out} * window + row);
  }
}

// An output pixel of the batch. Divisions take long where one thread lets everything be copied, so
// that the next part's pixel is found by additions.
struct PixelPlace {
  int index, image, row, column;
  int rows, columns;  // to the next part

  __device__ PixelPlace(const WeightGradient& g, int pixel)
      : index(pixel),
        image(pixel / (g.out_height * g.out_width)),
        row(pixel / g.out_width % g.out_height),
        column(pixel % g.out_width),
        rows(kInner / g.out_width),
        columns(kInner % g.out_width) {}

  __device__ void Advance(const WeightGradient& g) {
    index += kInner;
    column += columns;
    row += rows;
    if (column >= g.out_width) {
      column -= g.out_width;
      ++row;
    }
    while (row >= g.out_height) {
      row -= g.out_height;
      ++image;
    }
  }
};

// Blocks: x over ranges of pixels, the blocks of a cluster first; y over taps and input channels, z
// over output channels.
template <class P>
__global__ void __launch_bounds__(kLaunchBound, 2)
    WideWeightGradientKernel(const __grid_constant__ WeightGradient g, int cluster_blocks,
                             const __grid_constant__ CUtensorMap x,
                             const __grid_constant__ CUtensorMap dy,
                             const __grid_constant__ SumTarget target) {
#if THIMBLE_HAS_WARPGROUPS
  constexpr int kChunk = P::A::kChunk;
  constexpr int kChunks = kRows / kChunk;
  extern __shared__ float shared[];
  __shared__ Ring ring;
  ring.Make();
  if (threadIdx.x == 0) {
    PrefetchMap(x);
    PrefetchMap(dy);
  }
  float* slots = AlignedShared(shared);
  const PartRange range =
      PartsOf(static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x), NumParts(g));
  // Taps and input channels of the block's chunks. Beyond the last tap, a channel that does not
  // exist: zeros are copied.
  struct ChunkPlace {
    int channel, down, right;
  } chunks[kChunks];
#pragma unroll
  for (int i = 0; i < kChunks; ++i) {
    const int row = static_cast<int>(blockIdx.y) * kRows + i * kChunk;
    const int tap = min(row / g.channels, g.kernel * g.kernel - 1);
    chunks[i] = {row - tap * g.channels, tap / g.kernel, tap % g.kernel};
  }
  const int out = g.first_out + static_cast<int>(blockIdx.z) * P::kColumns;
  const auto load = [&, pixel = PixelPlace(g, range.first * kInner)](uint32_t to,
                                                                     Handover& full) mutable {
    const WindowPlace place{pixel.image, pixel.row * g.stride - g.padding,
                            pixel.column * g.stride - g.padding};
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      CopyWindowPixels(x, place, chunks[i].channel, chunks[i].down, chunks[i].right,
                       to + i * P::A::kChunkBytes, full);
    }
#pragma unroll
    for (int i = 0; i < P::kColumns / P::B::kChunk; ++i) {
      CopyBox(dy, out + i * P::B::kChunk, pixel.index, to + P::kBytesA + i * P::B::kChunkBytes,
              full);
    }
    pixel.Advance(g);
  };
  WarpgroupSums<P::kColumns> sums;
  WaitForKernelsBefore(NextKernels::kLater);
  MultiplyParts<P>(
      ring, SharedAddress(slots), range.count, load, [] { return true; }, sums);
  LetNextKernelsBegin();
  __syncthreads();  // no slot is read any more
  ForEachPair<P::kColumns>([&](int row, int column, int i) {
    slots[column * kPitch + row] = sums[i];
    slots[(column + 1) * kPitch + row] = sums[i + 1];
  });
  SyncCluster();
  StoreTile<P>(g, cluster_blocks, slots, target);
  SyncBeforeEnd();  // until here others read this block's sums
#endif
}

template <class P>
bool Launch(cudaStream_t stream, const WeightGradient& g, const WideSharing& sharing,
            const WeightGradientArrays& arrays) {
  const auto kernel = WideWeightGradientKernel<P>;
  static const bool is_there = Prepare(kernel, kSharedBytes<P>);
  if (!is_there) return false;
  const DType type = DTypeOf<typename P::Number>();
  const CUtensorMap x = MapOfWindows(arrays.x.data, type, WindowsOf(g), P::A::kChunk, kInner);
  const CUtensorMap dy =
      MapOfBoxes(arrays.dy.data, type,
                 std::array{static_cast<uint64_t>(g.out_channels),
                            static_cast<uint64_t>(g.batch) * g.out_height * g.out_width},
                 std::array<uint32_t, 2>{P::B::kChunk, kInner});
  const auto quotient = [](int a, int b) { return static_cast<unsigned>((a + b - 1) / b); };
  const dim3 blocks(static_cast<unsigned>(sharing.cluster_blocks * sharing.clusters),
                    quotient(g.kernel * g.kernel * g.channels, kRows),
                    quotient(g.end_out - g.first_out, P::kColumns));
  LaunchClusters(stream, blocks, kThreads, kSharedBytes<P>, sharing.cluster_blocks, kernel, g,
                 sharing.cluster_blocks, x, dy, TargetOfCopies(g, sharing.clusters, arrays));
  return true;
}

}  // namespace
}  // namespace wide

std::optional<WideSharing> WideSharingOf(const WeightGradient& g) {
  using wide::kRows;
  if (g.channels % 32 != 0 || g.out_channels % 32 != 0 || g.channels < 64 || g.out_channels < 64 ||
      g.batch == 0 || !CanMapWindows(wide::WindowsOf(g))) {
    return std::nullopt;
  }
  const int parts = wide::NumParts(g);
  const int window = g.kernel * g.kernel * g.channels;
  // Copies of dw in scratch take at most half of the bytes of x.
  const int64_t x_bytes = int64_t{2} * g.batch * g.height * g.width * g.channels;
  const auto most_clusters =
      std::clamp<int64_t>(x_bytes / 2 / (g.elements() * int64_t{sizeof(float)}), 1, 6);
  std::optional<WideSharing> best;
  double best_cycles = 0;
  for (const int columns : {64, 128, 160}) {
    const int64_t tiles =
        int64_t{(window + kRows - 1) / kRows} * ((g.out_channels + columns - 1) / columns);
    for (int clusters = 1; clusters <= most_clusters; ++clusters) {
      for (int blocks = 1; blocks <= kMaxClusterBlocks; ++blocks) {
        const int splits = blocks * clusters;
        if (splits > parts) break;
        // The sum over copies: a launch, and their bytes.
        constexpr double kSumBytes = 1500;  // per cycle
        const double sum = clusters == 1
                               ? 0
                               : 4000 + static_cast<double>(clusters) *
                                            static_cast<double>(g.elements()) * 4 / kSumBytes;
        const double cycles = sum + wide::EstimatedCycles(columns, tiles * splits,
                                                          (parts + splits - 1) / splits, blocks);
        if (best && cycles >= best_cycles) continue;
        best = WideSharing{columns, blocks, clusters};
        best_cycles = cycles;
      }
    }
  }
  return best;
}

bool LaunchWideWeightGradient(cudaStream_t stream, const WeightGradient& g,
                              const WideSharing& sharing, Math math,
                              const WeightGradientArrays& arrays) {
  const auto launch = [&]<class Number, int kChunk, int kColumns>() {
    using A = wide::FactorShape<kChunk, true>;
    using B = wide::FactorShape<kColumns % 64 == 0 ? 64 : 32, true>;
    return wide::Launch<wide::Product<Number, kColumns, A, B>>(stream, g, sharing, arrays);
  };
  const auto by_columns = [&]<class Number, int kChunk>() {
    if (sharing.columns == 64) return launch.template operator()<Number, kChunk, 64>();
    if (sharing.columns == 128) return launch.template operator()<Number, kChunk, 128>();
    return launch.template operator()<Number, kChunk, 160>();
  };
  const auto by_chunk = [&]<class Number>() {
    return g.channels % 64 == 0 ? by_columns.template operator()<Number, 64>()
                                : by_columns.template operator()<Number, 32>();
  };
  return math == Math::kF16 ? by_chunk.template operator()<F16>()
                            : by_chunk.template operator()<BF16>();
}

}  // namespace thimble
