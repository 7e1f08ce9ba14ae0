// One block makes a tile of result pixels by a tile of result channels, part by part of the source
// channels. The source pixels that the tile's taps reach and the weights of all taps lie in shared
// memory, so that each is read from global memory about once and not once for each tap. In TF32
// both are rounded on their way in, and warps multiply 16x8x8 blocks on tensor cores straight out
// of the shifted tile; in fp32 each lane multiplies for the same sums that it would hold then.
// Several blocks share a multiprocessor: while one waits for memory, others multiply.
#include <cuda_runtime.h>

#include <algorithm>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/tensor_core.cuh"
#include "thimble/ops/conv2d/cuda/image_tile.cuh"
#include "thimble/ops/conv2d/cuda/tap_convolution.h"

namespace thimble {
namespace {

// Floats between neighbouring pixels in shared memory: eight rows of four floats then lie in
// different banks.
constexpr int kPitch = kChannelsPerPart + 4;
// 227 KB are the most of an H100's, 163 KB of an A100's block.
constexpr size_t kMaxSharedBytes = size_t{160} << 10;

// How weights lie in memory: those of neighbouring source or result channels side by side. They lie
// likewise in shared memory.
enum class Weights { kSourceInner, kResultInner };

template <int kImages_, int kRows_, int kColumns_, int kChannels_, int kWarpsM_, int kWarpsN_>
struct Tile {
  static constexpr int kImages = kImages_;
  static constexpr int kRows = kRows_;  // positions of each image
  static constexpr int kColumns = kColumns_;
  static constexpr int kPixels = kImages * kRows * kColumns;
  static constexpr int kChannels = kChannels_;  // of the result
  static constexpr int kWarpsN = kWarpsN_;
  static constexpr int kThreads = 32 * kWarpsM_ * kWarpsN_;
  static constexpr int kWarpPixels = kPixels / kWarpsM_;
  static constexpr int kWarpChannels = kChannels / kWarpsN_;
  static constexpr int kBlocksM = kWarpPixels / 16;
  static constexpr int kBlocksN = kWarpChannels / 8;
  static_assert(kBlocksN % 2 == 0 && kWarpPixels % 16 == 0);
  static_assert(kColumns % 8 == 0, "eight neighbouring pixels lie in one line of the tile");
};

template <class T>
__host__ __device__ TileArea AreaOf(const TapConvolution& c) {
  return {(T::kRows - 1) * c.step + 1 + c.reach_rows,
          (T::kColumns - 1) * c.step + 1 + c.reach_columns};
}

__host__ __device__ int MostTaps(const TapConvolution& c) {
  int most = 0;
  for (int grid = 0; grid < c.num_grids; ++grid) {
    if (c.grids[grid].num_taps > most) most = c.grids[grid].num_taps;
  }
  return most;
}

// The weights of one tap in shared memory: rows of source channels for each result channel, or rows
// of result channels for each source channel, four of which then lie in different banks.
template <class T, Weights kLayout>
struct WeightTile {
  static constexpr bool kBySource = kLayout == Weights::kSourceInner;
  static constexpr int kRows = kBySource ? T::kChannels : kChannelsPerPart;
  static constexpr int kRowFloats = kBySource ? kChannelsPerPart : T::kChannels;
  static constexpr int kRowPitch = kBySource ? kPitch : T::kChannels + 8;
  static constexpr int kFloats = kRows * kRowPitch;
  static constexpr int kGroups = kRows * kRowFloats / 4;  // of four floats

  __device__ static int Place(int group) {
    return group / (kRowFloats / 4) * kRowPitch + group % (kRowFloats / 4) * 4;
  }
};

template <class T>
size_t SharedBytes(const TapConvolution& c) {
  const size_t weights = std::max(WeightTile<T, Weights::kSourceInner>::kFloats,
                                  WeightTile<T, Weights::kResultInner>::kFloats) *
                         static_cast<size_t>(MostTaps(c));
  return (static_cast<size_t>(T::kImages * AreaOf<T>(c).pixels()) * kPitch + weights) *
         sizeof(float);
}

// Copies the weights of all taps of a grid for one tile of result channels and one part.
template <class T, Channels kChannels, Weights kLayout>
__device__ void CopyWeights(const TapConvolution& c, const TapGrid& grid, const float* weights,
                            int first_result, int first_channel, float* tile) {
  using W = WeightTile<T, kLayout>;
  for (int group = static_cast<int>(threadIdx.x); group < W::kGroups; group += T::kThreads) {
    const int row = group / (W::kRowFloats / 4);
    const int inner = group % (W::kRowFloats / 4) * 4;
    const int n = first_result + (W::kBySource ? row : inner);
    const int k = first_channel + (W::kBySource ? inner : row);
    const int valid = n >= c.out_channels || k >= c.channels ? 0
                      : W::kBySource                         ? c.channels - k
                                                             : c.out_channels - n;
    const int offset = valid > 0 ? n * c.n_stride + k * c.k_stride : 0;
    float* to = tile + W::Place(group);
    for (int tap = 0; tap < grid.num_taps; ++tap) {
      CopyFour<kChannels>(to + tap * W::kFloats,
                          weights + offset + grid.taps[tap].weight * c.t_stride, valid);
    }
  }
}

template <class T, Weights kLayout>
__device__ void RoundWeights(int taps, float* tile) {
  using W = WeightTile<T, kLayout>;
  for (int group = static_cast<int>(threadIdx.x); group < W::kGroups; group += T::kThreads) {
    for (int tap = 0; tap < taps; ++tap) RoundFour(tile + W::Place(group) + tap * W::kFloats);
  }
}

template <class T>
struct Sums {
  float values[T::kBlocksM][T::kBlocksN][4] = {};
};

// Adds the products of one tap and eight channels from `k` on. `pixels` are addresses as LoadA
// wants them, `weights` those of this warp's first result channel.
template <class T, Weights kLayout>
__device__ void MultiplyTf32(const uint32_t (&pixels)[T::kBlocksM], const float* weights, int k,
                             Sums<T>& sums) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  TensorCoreA a[T::kBlocksM];
  TensorCoreB b[T::kBlocksN];
#pragma unroll
  for (int m = 0; m < T::kBlocksM; ++m) {
    LoadA(pixels[m] + static_cast<uint32_t>(k * sizeof(float)), a[m]);
  }
  if constexpr (kLayout == Weights::kSourceInner) {
    const uint32_t address =
        SharedAddress(weights + RowOfLaneB(lane) * kPitch + ColumnOfLaneB(lane) + k);
#pragma unroll
    for (int n = 0; n < T::kBlocksN; n += 2) {
      LoadTwoB(address + static_cast<uint32_t>(n * 8 * kPitch * sizeof(float)), b[n], b[n + 1]);
    }
  } else {
    constexpr int kRowPitch = WeightTile<T, kLayout>::kRowPitch;
    const float* lane_weights = weights + (k + lane % 4) * kRowPitch + lane / 4;
#pragma unroll
    for (int n = 0; n < T::kBlocksN; ++n) {
      b[n] = {{__float_as_uint(lane_weights[n * 8]),
               __float_as_uint(lane_weights[4 * kRowPitch + n * 8])}};
    }
  }
#pragma unroll
  for (int m = 0; m < T::kBlocksM; ++m) {
#pragma unroll
    for (int n = 0; n < T::kBlocksN; ++n) MultiplyAdd(a[m], b[n], sums.values[m][n]);
  }
}

// The same in fp32; `pixels` are places in the tile of rows lane / 4 and lane / 4 + 8 of each
// block.
template <class T, Weights kLayout>
__device__ void MultiplyFp32(const float* tile, const int (&pixels)[2 * T::kBlocksM],
                             const float* weights, int first_k, Sums<T>& sums) {
  const int column = static_cast<int>(threadIdx.x) % 4 * 2;
  for (int k = first_k; k < first_k + 8; ++k) {
    float b[T::kBlocksN][2];
#pragma unroll
    for (int n = 0; n < T::kBlocksN; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        constexpr int kRowPitch = WeightTile<T, kLayout>::kRowPitch;
        const int channel = n * 8 + column + i;
        b[n][i] = kLayout == Weights::kSourceInner ? weights[channel * kRowPitch + k]
                                                   : weights[k * kRowPitch + channel];
      }
    }
#pragma unroll
    for (int m = 0; m < 2 * T::kBlocksM; ++m) {
      const float a = tile[pixels[m] * kPitch + k];
#pragma unroll
      for (int n = 0; n < T::kBlocksN; ++n) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float& sum = sums.values[m / 2][n][m % 2 * 2 + i];
          sum = fmaf(a, b[n][i], sum);
        }
      }
    }
  }
}

// A tile of result pixels and channels: grid, first image, position and channel where it begins.
struct Item {
  int grid, image, row, column, result;
};

template <class T>
struct Items {
  int images, down, across, results;
  int count;

  __host__ __device__ explicit Items(const TapConvolution& c)
      : images((c.batch + T::kImages - 1) / T::kImages),
        // The grid of residue 0 is the largest.
        down((c.grids[0].rows + T::kRows - 1) / T::kRows),
        across((c.grids[0].columns + T::kColumns - 1) / T::kColumns),
        results((c.out_channels + T::kChannels - 1) / T::kChannels),
        count(images * down * across * results * c.num_grids) {}

  // Neighbouring items read the same source.
  __device__ Item At(const TapConvolution& c, int index) const {
    Item item;
    item.grid = index % c.num_grids;
    index /= c.num_grids;
    item.result = index % results * T::kChannels;
    index /= results;
    item.column = index % across * T::kColumns;
    index /= across;
    item.row = index % down * T::kRows;
    item.image = index / down * T::kImages;
    return item;
  }
};

template <class T>
__device__ void StoreResult(const TapConvolution& c, const Item& item, const Sums<T>& sums,
                            float* result) {
  const TapGrid& grid = c.grids[item.grid];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_pixel = warp / T::kWarpsN * T::kWarpPixels;
  const int warp_channel = item.result + warp % T::kWarpsN * T::kWarpChannels;
#pragma unroll
  for (int m = 0; m < T::kBlocksM; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int pixel = warp_pixel + m * 16 + half * 8 + lane / 4;
      const int image = item.image + pixel / (T::kRows * T::kColumns);
      const int row = item.row + pixel / T::kColumns % T::kRows;
      const int column = item.column + pixel % T::kColumns;
      if (image >= c.batch || row >= grid.rows || column >= grid.columns) continue;
      const int64_t out_row =
          static_cast<int64_t>(image) * c.out_height + grid.out_row + row * c.out_step;
      float* out =
          result + (out_row * c.out_width + grid.out_column + column * c.out_step) * c.out_channels;
#pragma unroll
      for (int n = 0; n < T::kBlocksN; ++n) {
        const int channel = warp_channel + n * 8 + lane % 4 * 2;
        const float* pair = &sums.values[m][n][2 * half];
        if (c.out_channels % 2 == 0) {
          if (channel < c.out_channels) {
            *reinterpret_cast<float2*>(out + channel) = make_float2(pair[0], pair[1]);
          }
        } else {
          if (channel < c.out_channels) out[channel] = pair[0];
          if (channel + 1 < c.out_channels) out[channel + 1] = pair[1];
        }
      }
    }
  }
}

// Adds the products of one part for all taps of the item's grid.
template <class T, Math kMath, Weights kLayout>
__device__ void MultiplyPart(const TapGrid& grid, const TileArea& area, int step, int part,
                             const float* tile, const float* weights, Sums<T>& sums) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_pixel = warp / T::kWarpsN * T::kWarpPixels;
  const int warp_channel = warp % T::kWarpsN * T::kWarpChannels;
  const float* warp_weights =
      weights + warp_channel * (kLayout == Weights::kSourceInner ? kPitch : 1);
  constexpr int kPlaces = kMath == Math::kTf32 ? T::kBlocksM : 2 * T::kBlocksM;
  int places[kPlaces];
#pragma unroll
  for (int i = 0; i < kPlaces; ++i) {
    const int pixel =
        warp_pixel + (kMath == Math::kTf32 ? i * 16 + RowOfLaneA(lane) : i * 8 + lane / 4);
    const int image = pixel / (T::kRows * T::kColumns);
    const int row = pixel / T::kColumns % T::kRows;
    places[i] = image * area.pixels() + (row * area.columns + pixel % T::kColumns) * step;
  }
  for (int t = 0; t < grid.num_taps; ++t) {
    const float* moved = tile + (grid.taps[t].row * area.columns + grid.taps[t].column) * kPitch;
    const float* tap_weights = warp_weights + t * WeightTile<T, kLayout>::kFloats;
    if constexpr (kMath == Math::kTf32) {
      uint32_t addresses[kPlaces];
#pragma unroll
      for (int i = 0; i < kPlaces; ++i) {
        addresses[i] = SharedAddress(moved + places[i] * kPitch + ColumnOfLaneA(lane));
      }
      if (part == kChannelsPerPart) {
#pragma unroll
        for (int k = 0; k < kChannelsPerPart; k += 8) {
          MultiplyTf32<T, kLayout>(addresses, tap_weights, k, sums);
        }
      } else {
        for (int k = 0; k < part; k += 8) {
          MultiplyTf32<T, kLayout>(addresses, tap_weights, k, sums);
        }
      }
    } else {
      for (int k = 0; k < part; k += 8) {
        MultiplyFp32<T, kLayout>(moved, places, tap_weights, k, sums);
      }
    }
  }
}

// Items are dealt out to blocks in turn.
template <class T, Math kMath, Channels kChannels, Weights kLayout>
__global__ void __launch_bounds__(T::kThreads, T::kThreads > 128 ? 2 : 3)
    TapConvolutionKernel(const __grid_constant__ TapConvolution c, const float* source,
                         const float* weights, float* result) {
  using Source = ImageTile<kChannels, T::kThreads, kChannelsPerPart / 4, kPitch>;
  extern __shared__ float shared[];
  const Items<T> items(c);
  const TileArea area = AreaOf<T>(c);
  float* tile = shared;
  float* weight_tile = shared + T::kImages * area.pixels() * kPitch;
  // Which weights are in shared memory: of which item's grid and result channels, which part.
  int present_grid = -1;
  int present_result = -1;
  int present_channel = -1;
  for (int index = static_cast<int>(blockIdx.x); index < items.count;
       index += static_cast<int>(gridDim.x)) {
    const Item item = items.At(c, index);
    const TapGrid& grid = c.grids[item.grid];
    Sums<T> sums;
    for (int channel = 0; channel < c.channels && grid.num_taps > 0; channel += kChannelsPerPart) {
      __syncthreads();  // nobody reads the part before any more
      for (int i = 0; i < T::kImages && item.image + i < c.batch; ++i) {
        const int64_t image_floats = static_cast<int64_t>(c.height) * c.width * c.channels;
        const int scale = c.step * c.load_step;
        Source::Copy({source + (item.image + i) * image_floats, c.height, c.width, c.channels},
                     {grid.first_row + item.row * scale, grid.first_column + item.column * scale,
                      c.load_step},
                     area, channel, tile + i * area.pixels() * kPitch);
      }
      const bool new_weights =
          item.grid != present_grid || item.result != present_result || channel != present_channel;
      if (new_weights) {
        CopyWeights<T, kChannels, kLayout>(c, grid, weights, item.result, channel, weight_tile);
        present_grid = item.grid;
        present_result = item.result;
        present_channel = channel;
      }
      WaitForCopies();
      if constexpr (kMath == Math::kTf32) {
        for (int i = 0; i < T::kImages; ++i) {
          Source::Round(area.pixels(), tile + i * area.pixels() * kPitch);
        }
        if (new_weights) RoundWeights<T, kLayout>(grid.num_taps, weight_tile);
      }
      __syncthreads();
      // Whole blocks of eight; what there is not of them is zero.
      const int part = min(kChannelsPerPart, (c.channels - channel + 7) / 8 * 8);
      MultiplyPart<T, kMath, kLayout>(grid, area, c.step, part, tile, weight_tile, sums);
    }
    StoreResult<T>(c, item, sums, result);
  }
}

template <class T, Math kMath, Channels kChannels, Weights kLayout>
void Launch(cudaStream_t stream, const TapConvolution& c, const float* source, const float* weights,
            float* result) {
  const auto kernel = TapConvolutionKernel<T, kMath, kChannels, kLayout>;
  const size_t shared_bytes = SharedBytes<T>(c);
  static const int multiprocessors = [&] {
    THIMBLE_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(kMaxSharedBytes)));
    int device = 0;
    int count = 0;
    THIMBLE_CUDA(cudaGetDevice(&device));
    THIMBLE_CUDA(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
    return count;
  }();
  // As many blocks as run at once; how many there are changes no bit of the result.
  int per_multiprocessor = 0;
  THIMBLE_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, kernel,
                                                             T::kThreads, shared_bytes));
  const int blocks = std::min(Items<T>(c).count, std::max(1, per_multiprocessor) * multiprocessors);
  if (blocks == 0) return;
  kernel<<<static_cast<unsigned>(blocks), T::kThreads, shared_bytes, stream>>>(c, source, weights,
                                                                               result);
  THIMBLE_CUDA_LAUNCHED();
}

// By width of the grid and by channels: no more than there are.
using Wide16 = Tile<1, 8, 16, 16, 4, 1>;
using Wide32 = Tile<1, 16, 16, 32, 8, 1>;
using Narrow16 = Tile<1, 8, 8, 16, 4, 1>;
using Narrow32 = Tile<1, 8, 8, 32, 2, 2>;
using Four32 = Tile<4, 8, 8, 32, 8, 1>;

// Calls visit.template operator()<T>() for the tile of this convolution.
template <class Visit>
auto WithTile(const TapConvolution& c, const Visit& visit) {
  const bool wide = c.grids[0].columns > 8 && c.step == 1;
  if (c.out_channels <= 16) {
    return wide ? visit.template operator()<Wide16>() : visit.template operator()<Narrow16>();
  }
  if (wide) return visit.template operator()<Wide32>();
  if (c.step == 1) return visit.template operator()<Four32>();
  return visit.template operator()<Narrow32>();
}

}  // namespace

bool FitsTapConvolution(const TapConvolution& convolution) {
  return WithTile(convolution, [&]<class T>() {
    return SharedBytes<T>(convolution) <= kMaxSharedBytes &&
           AreaOf<T>(convolution).pixels() < kMaxTilePixels;
  });
}

void LaunchTapConvolution(cudaStream_t stream, const TapConvolution& c, Math math,
                          const float* source, const float* weights, float* result) {
  const bool fours = c.channels % 4 == 0 && c.out_channels % 4 == 0;
  WithTile(c, [&]<class T>() {
    const auto launch = [&]<Math kMath, Channels kChannels>() {
      if (c.k_stride == 1) {
        Launch<T, kMath, kChannels, Weights::kSourceInner>(stream, c, source, weights, result);
      } else {
        Launch<T, kMath, kChannels, Weights::kResultInner>(stream, c, source, weights, result);
      }
    };
    if (math == Math::kFp32) {
      launch.template operator()<Math::kFp32, Channels::kOdd>();
    } else if (fours) {
      launch.template operator()<Math::kTf32, Channels::kFours>();
    } else {
      launch.template operator()<Math::kTf32, Channels::kOdd>();
    }
  });
}

}  // namespace thimble
