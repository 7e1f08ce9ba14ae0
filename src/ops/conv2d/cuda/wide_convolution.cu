// A block computes 128 result pixels by kColumns result channels. A part of the inner dimension is
// one tap and 64 source channels: the copy engine reads the tap's pixels of 128 neighbouring
// windows.
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/device/cuda/tensor_map.h"
#include "thimble/device/cuda/wide_product.cuh"
#include "thimble/ops/conv2d/cuda/wide_convolution.h"

namespace thimble {
namespace wide {
namespace {

constexpr int kMaxWideTaps = 9;

// A grid of result pixels, one window of the source each (TapGrid).
struct WideGrid {
  int down, across;             // windows of an image
  int first_row, first_column;  // source pixel of an image's first window
  int out_row, out_column;      // result pixel of an image's first window
  int pixels;                   // of all images
  int first_tile;
  int num_taps;  // none: the result is zero there
  Tap taps[kMaxWideTaps];
};

// Plain numbers, passed to the GPU by value.
struct WideConvolution {
  int channels, out_channels;
  int out_height, out_width;
  int out_step;  // result pixels between neighbouring windows
  int stride;    // source pixels between neighbouring windows
  int blocks;    // of a cluster
  int num_grids;
  WideGrid grids[kMaxResidues];

  __host__ __device__ int parts_of_tap() const { return (channels + kInner - 1) / kInner; }
};

// The source as the windows of each grid.
struct SourceMaps {
  CUtensorMap of_grid[kMaxResidues];
};

// Sums in shared memory, [pixel][channel]. Rows are shifted by eight banks.
template <int kColumns>
inline constexpr int kPitch = kColumns + 8;

template <class Number>
struct Stored {
  const Number* other;  // null, or added to the result
  Number* result;
};

// Where the result of a grid's pixel is.
__device__ inline int64_t ResultAt(const WideConvolution& c, const WideGrid& grid, int pixel) {
  if (c.out_step == 1) return int64_t{pixel} * c.out_channels;  // all pixels, in order
  const int line = pixel / grid.across;
  const int row = grid.out_row + line % grid.down * c.out_step;
  const int column = grid.out_column + pixel % grid.across * c.out_step;
  return ((int64_t{line / grid.down} * c.out_height + row) * c.out_width + column) * c.out_channels;
}

// Adds up the sums of the cluster's blocks; each block stores a part of the tile.
template <class P>
__device__ void StoreTile(const WideConvolution& c, const WideGrid& grid, int first_pixel,
                          int first_channel, const float* sums,
                          const Stored<typename P::Number>& stored) {
  constexpr int kFours = P::kColumns / 4;
  const int rank = static_cast<int>(blockIdx.x) % c.blocks;
  for (int i = rank * kThreads + static_cast<int>(threadIdx.x); i < kRows * kFours;
       i += c.blocks * kThreads) {
    const int row = i / kFours;
    const int column = i % kFours * 4;
    if (first_pixel + row >= grid.pixels || first_channel + column >= c.out_channels) continue;
    float four[4];
    AddUpFour(sums + row * kPitch<P::kColumns> + column, c.blocks, four);
    const int64_t at = ResultAt(c, grid, first_pixel + row) + first_channel + column;
    if (stored.other != nullptr) {
      const auto other = LoadPack<4>(stored.other + at);
#pragma unroll
      for (int k = 0; k < 4; ++k) four[k] += other[k];
    }
    StorePack(four, stored.result + at);
  }
}

// The place of a part in the inner dimension; parts follow each other.
struct PartPlace {
  int tap, channel;

  __device__ PartPlace(int part, int parts_of_tap)
      : tap(part / parts_of_tap), channel(part % parts_of_tap * kInner) {}
  __device__ void Advance(int channels) {
    channel += kInner;
    if (channel < channels) return;
    channel = 0;
    ++tap;
  }
};

// Blocks: x over tiles of pixels, grid by grid, the blocks of a cluster first; y over tiles of
// channels. kGradient: the weights' rows are source channels.
template <class P, bool kGradient>
__global__ void __launch_bounds__(kLaunchBound, 2)
    WideConvolutionKernel(const __grid_constant__ WideConvolution c,
                          const __grid_constant__ SourceMaps sources,
                          const __grid_constant__ CUtensorMap weights,
                          Stored<typename P::Number> stored) {
#if THIMBLE_HAS_WARPGROUPS
  extern __shared__ float shared[];
  __shared__ Ring ring;
  ring.Make();
  float* slots = AlignedShared(shared);
  const int tile = static_cast<int>(blockIdx.x) / c.blocks;
  int index = 0;
  while (index + 1 < c.num_grids && tile >= c.grids[index + 1].first_tile) ++index;
  const WideGrid& grid = c.grids[index];
  const CUtensorMap& source = sources.of_grid[index];
  if (threadIdx.x == 0) {
    PrefetchMap(source);
    PrefetchMap(weights);
  }
  const int first_pixel = (tile - grid.first_tile) * kRows;
  const int first_channel = static_cast<int>(blockIdx.y) * P::kColumns;
  const PartRange range =
      PartsOf(static_cast<int>(blockIdx.x) % c.blocks, c.blocks, grid.num_taps * c.parts_of_tap());
  const PartPlace first_part(range.first, c.parts_of_tap());
  const int in_image = first_pixel % (grid.down * grid.across);
  const WindowPlace place{first_pixel / (grid.down * grid.across),
                          grid.first_row + in_image / grid.across * c.stride,
                          grid.first_column + in_image % grid.across * c.stride};
  const auto load = [&, part = first_part](uint32_t to, Handover& full) mutable {
    const Tap& tap = grid.taps[part.tap];
    CopyWindowPixels(source, place, part.channel, tap.row, tap.column, to, full);
    to += P::kBytesA;
    if constexpr (kGradient) {
#pragma unroll
      for (int i = 0; i < P::kColumns / P::B::kChunk; ++i) {
        CopyBox(weights, first_channel + i * P::B::kChunk, tap.weight, part.channel,
                to + i * P::B::kChunkBytes, full);
      }
    } else {
      CopyBox(weights, part.channel, tap.weight, first_channel, to, full);
    }
    part.Advance(c.channels);
  };
  const auto next_is_whole = [&, part = first_part]() mutable {
    const bool is_whole = c.channels - part.channel > kInner / 2;
    part.Advance(c.channels);
    return is_whole;
  };
  WarpgroupSums<P::kColumns> sums;
  WaitForKernelsBefore(NextKernels::kLater);
  MultiplyParts<P>(ring, SharedAddress(slots), range.count, load, next_is_whole, sums);
  LetNextKernelsBegin();
  __syncthreads();  // no slot is read any more
  ForEachPair<P::kColumns>([&](int row, int column, int i) {
    *reinterpret_cast<float2*>(slots + row * kPitch<P::kColumns> + column) =
        make_float2(sums[i], sums[i + 1]);
  });
  SyncCluster();
  StoreTile<P>(c, grid, first_pixel, first_channel, slots, stored);
  SyncBeforeEnd();  // until here others read this block's sums
#endif
}

// How a convolution is divided into blocks.
struct Tiling {
  int columns = 0;
  int blocks = 0;  // of a cluster
};

int TilesOf(const WideGrid& grid) { return (grid.pixels + kRows - 1) / kRows; }
int TilesOf(const WideConvolution& c) {
  const WideGrid& last = c.grids[c.num_grids - 1];
  return last.first_tile + TilesOf(last);
}

// The fastest tiling of this shape by EstimatedCycles.
Tiling TilingOf(const WideConvolution& c) {
  Tiling best;
  double best_cycles = 0;
  int parts = 0;  // of all tiles, as a mean
  for (int i = 0; i < c.num_grids; ++i) {
    parts += TilesOf(c.grids[i]) * c.grids[i].num_taps * c.parts_of_tap();
  }
  parts = (parts - 1) / TilesOf(c) + 1;
  for (const int columns : {64, 128, 160}) {
    for (const int blocks : {1, 2, 4, 8}) {
      if (blocks > 1 && parts < 2 * blocks) continue;
      const int64_t tiles = int64_t{TilesOf(c)} * ((c.out_channels + columns - 1) / columns);
      const double cycles =
          EstimatedCycles(columns, tiles * blocks, (parts + blocks - 1) / blocks, blocks);
      if (best.columns != 0 && cycles >= best_cycles) continue;
      best = {columns, blocks};
      best_cycles = cycles;
    }
  }
  return best;
}

template <class P, bool kGradient>
bool Launch(cudaStream_t stream, const WideConvolution& c, const SourceMaps& sources,
            const TapArrays& arrays, int kernel_taps) {
  using Number = typename P::Number;
  const auto kernel = WideConvolutionKernel<P, kGradient>;
  static const bool is_there = Prepare(kernel, kSharedBytes<P>);
  if (!is_there) return false;
  const auto inner = static_cast<uint64_t>(kGradient ? c.out_channels : c.channels);
  const auto outer = static_cast<uint64_t>(kGradient ? c.channels : c.out_channels);
  const CUtensorMap weights =
      MapOfBoxes(arrays.weights.data, DTypeOf<Number>(),
                 std::array{inner, static_cast<uint64_t>(kernel_taps), outer},
                 std::array<uint32_t, 3>{P::B::kChunk, 1,
                                         static_cast<uint32_t>(kGradient ? kInner : P::kColumns)});
  const auto tiles = static_cast<unsigned>(TilesOf(c));
  const auto columns = static_cast<unsigned>((c.out_channels + P::kColumns - 1) / P::kColumns);
  LaunchClusters(stream, dim3(tiles * static_cast<unsigned>(c.blocks), columns), kThreads,
                 kSharedBytes<P>, c.blocks, kernel, c, sources, weights,
                 Stored<Number>{static_cast<const Number*>(arrays.other.data),
                                static_cast<Number*>(arrays.result.data)});
  return true;
}

template <class Number, bool kGradient>
bool LaunchFor(cudaStream_t stream, const WideConvolution& c, const SourceMaps& sources,
               const TapArrays& arrays, int kernel_taps, int columns) {
  const auto launch = [&]<int kColumns>() {
    using Pixels = FactorShape<kInner, false>;
    using Channels = FactorShape<kGradient && kColumns % 64 != 0 ? 32 : 64, kGradient>;
    return Launch<Product<Number, kColumns, Pixels, Channels>, kGradient>(stream, c, sources,
                                                                          arrays, kernel_taps);
  };
  if (columns == 64) return launch.template operator()<64>();
  if (columns == 128) return launch.template operator()<128>();
  return launch.template operator()<160>();
}

// Whether this kernel is possible and faster than tiles of pixels in shared memory, which are read
// once for all taps: those are faster with few channels, but not with a stride.
bool IsSuited(const TapConvolution& c) {
  if (c.channels % 32 != 0 || c.out_channels % 32 != 0) return false;
  for (int i = 0; i < c.num_grids; ++i) {
    if (c.grids[i].num_taps > kMaxWideTaps) return false;
  }
  // A tap's position in a window is counted in source pixels.
  if (c.load_step > 1 && c.grids[0].num_taps > 1) return false;
  const int stride = std::max(c.step * c.load_step, c.out_step);
  return stride > 1 || (c.channels >= 64 && c.out_channels >= 64);
}

bool HaveOneType(const TapArrays& arrays) {
  const DType type = arrays.source.type;
  return arrays.weights.type == type && arrays.result.type == type &&
         (arrays.other.data == nullptr || arrays.other.type == type);
}

}  // namespace
}  // namespace wide

bool LaunchWideConvolution(cudaStream_t stream, const TapConvolution& convolution, Math math,
                           const TapArrays& arrays) {
  using wide::WideGrid;
  if (!wide::IsSuited(convolution) || !wide::HaveOneType(arrays)) return false;
  if (arrays.packed.is_packed()) return false;  // the copy engine cannot expand them
  wide::WideConvolution c{};
  c.channels = convolution.channels;
  c.out_channels = convolution.out_channels;
  c.out_height = convolution.out_height;
  c.out_width = convolution.out_width;
  c.out_step = convolution.out_step;
  c.stride = convolution.step * convolution.load_step;
  wide::SourceMaps sources{};
  for (int i = 0; i < convolution.num_grids; ++i) {
    const TapGrid& from = convolution.grids[i];
    const int pixels = convolution.batch * from.rows * from.columns;
    if (pixels == 0) continue;
    const int first_tile = c.num_grids == 0 ? 0 : wide::TilesOf(c);
    WideGrid& grid = c.grids[c.num_grids];
    grid = {from.rows,       from.columns, from.first_row, from.first_column, from.out_row,
            from.out_column, pixels,       first_tile,     from.num_taps,     {}};
    std::copy_n(from.taps, from.num_taps, grid.taps);
    const WindowedImages windows{convolution.batch, convolution.height, convolution.width,
                                 c.channels,        c.stride,           grid.first_row,
                                 grid.first_column, grid.down,          grid.across};
    if (grid.num_taps > 0) {
      if (!CanMapWindows(windows)) return false;
      sources.of_grid[c.num_grids] =
          MapOfWindows(arrays.source.data, arrays.source.type, windows, wide::kInner, wide::kRows);
    }
    ++c.num_grids;
  }
  if (c.num_grids == 0) return false;
  const wide::Tiling tiling = wide::TilingOf(c);
  c.blocks = tiling.blocks;
  const bool gradient = convolution.k_stride != 1;
  const int kernel_taps =
      gradient ? convolution.k_stride / c.out_channels : convolution.n_stride / c.channels;
  const auto launch = [&]<class Number>() {
    return gradient ? wide::LaunchFor<Number, true>(stream, c, sources, arrays, kernel_taps,
                                                    tiling.columns)
                    : wide::LaunchFor<Number, false>(stream, c, sources, arrays, kernel_taps,
                                                     tiling.columns);
  };
  return math == Math::kF16 ? launch.template operator()<F16>()
                            : launch.template operator()<BF16>();
}

}  // namespace thimble
