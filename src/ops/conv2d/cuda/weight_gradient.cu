// A block owns 32 output by 32 input channels of dw, all taps, and a split of the batch. For each
// tile of output pixels it copies dy and the x that its windows reach into shared memory; each warp
// takes a row of taps and multiplies 16x8x8 blocks whose inner dimension is pixels. If a kernel has
// few rows, several warps share a row and alternate over the pixels.
#include <cuda_runtime.h>

#include <algorithm>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/tensor_core.cuh"
#include "thimble/ops/conv2d/cuda/image_tile.cuh"
#include "thimble/ops/conv2d/cuda/sum_rows.cuh"
#include "thimble/ops/conv2d/cuda/weight_gradient.h"
#include "thimble/ops/conv2d/cuda/weight_gradient_tiling.cuh"

namespace thimble {
namespace {

// Floats between neighbouring pixels in shared memory: eight floats of four alternate pixels are
// then in different banks.
constexpr int kPitch = 36;

size_t SharedBytes(const Tiling& t, size_t exchange_floats) {
  const size_t tile_floats = static_cast<size_t>(t.rows * t.columns + t.area.pixels()) * kPitch;
  return std::max(2 * tile_floats, exchange_floats) * sizeof(float);
}

__device__ void LoadTwo(const float* from, uint32_t& first, uint32_t& second) {
  const uint2 two = *reinterpret_cast<const uint2*>(from);
  first = two.x;
  second = two.y;
}

// Adds the products of eight neighbouring pixels of a line; dy and x are those of the first. The
// assignment of pixels and channels to a block's rows and columns is arbitrary. Positions t and t +
// 4 of the inner dimension are pixels 2t and 2t + 1: with a stride of one, neighbouring taps then
// share a pixel of x. Rows g and g + 8 are output channels 2g and 2g + 1, loaded at once. kStride
// is 0 if it is not known at compile time.
template <class C, int kStride>
__device__ void MultiplyTf32(const float* dy, const float* x, int stride, WarpSums<C>& sums) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if constexpr (kStride > 0) stride = kStride;
  dy += lane % 4 * 2 * kPitch + lane / 4 * 2;
  x += lane % 4 * 2 * stride * kPitch + lane / 4;
  TensorCoreA a[C::kBlocksM];
#pragma unroll
  for (int m = 0; m < C::kBlocksM; ++m) {
    LoadTwo(dy + m * 16, a[m].values[0], a[m].values[1]);
    LoadTwo(dy + kPitch + m * 16, a[m].values[2], a[m].values[3]);
  }
#pragma unroll
  for (int n = 0; n < C::kBlocksN; ++n) {
    constexpr int kPixels = kStride == 1 ? C::kTaps + 1 : 2 * C::kTaps;
    uint32_t pixels[kPixels];
#pragma unroll
    for (int i = 0; i < kPixels; ++i) {
      const int pixel = kStride == 1 ? i : i % C::kTaps + i / C::kTaps * stride;
      pixels[i] = __float_as_uint(x[pixel * kPitch + n * 8]);
    }
#pragma unroll
    for (int tap = 0; tap < C::kTaps; ++tap) {
      const TensorCoreB b{{pixels[tap], pixels[tap + (kStride == 1 ? 1 : C::kTaps)]}};
#pragma unroll
      for (int m = 0; m < C::kBlocksM; ++m) MultiplyAdd<float>(a[m], b, sums.values[tap][m][n]);
    }
  }
}

// The same in fp32; each lane computes the sums that it would hold on tensor cores.
template <class C>
__device__ void MultiplyFp32(const float* dy, const float* x, int stride, WarpSums<C>& sums) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  dy += lane / 4 * 2;
  x += lane % 4 * 2;
  for (int pixel = 0; pixel < 8; ++pixel, dy += kPitch, x += stride * kPitch) {
#pragma unroll
    for (int tap = 0; tap < C::kTaps; ++tap) {
#pragma unroll
      for (int n = 0; n < C::kBlocksN; ++n) {
        const float2 b = *reinterpret_cast<const float2*>(x + tap * kPitch + n * 8);
#pragma unroll
        for (int m = 0; m < 2 * C::kBlocksM; ++m) {
          float* pair = &sums.values[tap][m / 2][n][m % 2 * 2];
          const float a = dy[m / 2 * 16 + m % 2];
          pair[0] = fmaf(a, b.x, pair[0]);
          pair[1] = fmaf(a, b.y, pair[1]);
        }
      }
    }
  }
}

// Adds the products of this warp's share of a tile. `row` is its row of taps, `turn` its turn.
template <class C, int kStride>
__device__ void MultiplyTile(const WeightGradient& g, const Tiling& t, const float* tile, int row,
                             int turn, WarpSums<C>& sums) {
  const float* dy_tile = tile;
  const float* x_tile = tile + t.rows * t.columns * kPitch;
  const int steps = t.rows << t.column_bits;
#pragma unroll 2
  for (int step = turn; step < steps; step += C::kTurns) {
    const int line = step >> t.column_bits;
    const int column = (step - (line << t.column_bits)) * 8;
    const float* dy = dy_tile + (line * t.columns + column) * kPitch;
    const float* x =
        x_tile + ((line * g.stride + row) * t.area.columns + column * g.stride) * kPitch;
    if constexpr (C::kMath == Math::kTf32) {
      MultiplyTf32<C, kStride>(dy, x, g.stride, sums);
    } else {
      MultiplyFp32<C>(dy, x, g.stride, sums);
    }
  }
}

// Adds up the sums of warps that share a row of taps, in the order of their turns; the first gets
// the result. `exchange` is shared memory that is no longer read.
template <class C>
__device__ void AddTurns(int row, int turn, float* exchange, WarpSums<C>& sums) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float* all = &sums.values[0][0][0][0];
  if (turn > 0) {
    float* own = exchange + ((turn - 1) * C::kTaps + row) * C::kSums * 32;
#pragma unroll
    for (int i = 0; i < C::kSums; ++i) own[i * 32 + lane] = all[i];
  }
  __syncthreads();
  if (turn > 0) return;
  for (int other = 0; other < C::kTurns - 1; ++other) {
    const float* theirs = exchange + (other * C::kTaps + row) * C::kSums * 32;
#pragma unroll
    for (int i = 0; i < C::kSums; ++i) all[i] += theirs[i * 32 + lane];
  }
}

// Not inlined: StoreSums would become much longer.
__noinline__ __device__ void HandOverPair(float first, float second, int valid, int64_t element,
                                          const SumTarget& target) {
  if (valid > 0) HandOverSums<1>({first}, target, element);
  if (valid > 1) HandOverSums<1>({second}, target, element + 1);
}

// The sums go to `dw`, a dense array of the elements that the launch computes, or to `target`.
template <class C, bool kToArray>
__device__ void StoreSums(const WeightGradient& g, int row, int first_out, int first_in,
                          const WarpSums<C>& sums, const OutNumbers<FloatStorage<C::kChannels>>& dw,
                          const SumTarget& target) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int in = first_in + lane % 4 * 2;
#pragma unroll
  for (int j = 0; j < 2 * C::kBlocksM; ++j) {
    const int out = first_out + j / 2 * 16 + lane / 4 * 2 + j % 2;
    if (out >= g.end_out) continue;
    int64_t first = (static_cast<int64_t>(out) * C::kTaps + row) * C::kTaps * g.channels + in;
    auto window = dw + (first - g.first_element());
#pragma unroll
    for (int tap = 0; tap < C::kTaps;
         ++tap, window = window + g.channels, first = first + g.channels) {
#pragma unroll
      for (int n = 0; n < C::kBlocksN; ++n) {
        const float* pair = &sums.values[tap][j / 2][n][j % 2 * 2];
        const int valid = g.channels - in - n * 8;
        if constexpr (!kToArray) {
          HandOverPair(pair[0], pair[1], valid, first + n * 8, target);
        } else if constexpr (C::kChannels == Channels::kFours) {
          if (valid > 0) *reinterpret_cast<float2*>(window + n * 8) = make_float2(pair[0], pair[1]);
        } else {
          if (valid > 0) StoreSingly(pair[0], window + n * 8);
          if (valid > 1) StoreSingly(pair[1], window + (n * 8 + 1));
        }
      }
    }
  }
}

// Blocks: x over splits, y over groups of output channels, z over groups of input channels. Each
// split has a copy of its own in `partial`; with `target`, there is only one split.
template <class C, bool kToArray>
__global__ void __launch_bounds__(C::kThreads, 2)
    WeightGradientKernel(const __grid_constant__ WeightGradient g, const __grid_constant__ Tiling t,
                         InNumbers<FloatStorage<C::kChannels>> x,
                         InNumbers<FloatStorage<C::kChannels>> dy,
                         OutNumbers<FloatStorage<C::kChannels>> partial,
                         const __grid_constant__ SumTarget target) {
  extern __shared__ float shared[];
  const TileArea dy_area{t.rows, t.columns};
  const int dy_floats = dy_area.pixels() * kPitch;
  const int tile_floats = dy_floats + t.area.pixels() * kPitch;
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / 32 / C::kTurns;
  const int turn = thread / 32 % C::kTurns;
  const int first_out = g.first_out + static_cast<int>(blockIdx.y) * C::kOut;
  const int first_in = static_cast<int>(blockIdx.z) * C::kIn;
  const int first = t.FirstTile(blockIdx.x);
  const int end = t.FirstTile(blockIdx.x + 1);

  using Groups = FloatGroups<C::kChannels>;
  using DyTile = ImageTile<Groups, C::kThreads, C::kOut, kPitch>;
  using XTile = ImageTile<Groups, C::kThreads, C::kIn, kPitch>;
  const auto copy = [&](int tile, float* to) {
    CopyTile<DyTile, XTile>(g, t, tile, Groups{x}, Groups{dy}, to);
  };

  WarpSums<C> sums;
  WaitForKernelsBefore(NextKernels::kLater);
  if (first < end) copy(first, shared);
  for (int tile = first; tile < end; ++tile) {
    float* present = shared + (tile - first) % 2 * tile_floats;
    WaitForCopies();
    if constexpr (C::kMath == Math::kTf32) {
      DyTile::Round(thread, dy_area.pixels(), present);
      XTile::Round(thread, t.area.pixels(), present + dy_floats);
    }
    __syncthreads();
    // All threads are done with the previous tile: the next one replaces it.
    if (tile + 1 < end) copy(tile + 1, shared + (tile - first + 1) % 2 * tile_floats);
    if (C::kMath == Math::kTf32 && g.stride == 1) {
      MultiplyTile<C, 1>(g, t, present, row, turn, sums);
    } else {
      MultiplyTile<C, 0>(g, t, present, row, turn, sums);
    }
  }
  LetNextKernelsBegin();
  __syncthreads();
  AddTurns<C>(row, turn, shared, sums);
  if (turn > 0) return;
  StoreSums<C, kToArray>(g, row, first_out, first_in, sums,
                         partial + blockIdx.x * g.range_elements(), target);
}

template <class C>
constexpr size_t ExchangeFloats() {
  return static_cast<size_t>(C::kTurns - 1) * C::kTaps * C::kSums * 32;
}

template <class C>
void Launch(cudaStream_t stream, const WeightGradient& g, const WeightGradientArrays& arrays) {
  using Storage = FloatStorage<C::kChannels>;
  const Tiling t = TilingOf(g, C::kOut, C::kIn);
  const dim3 blocks(static_cast<unsigned>(t.splits), OutGroups(g, C::kOut),
                    static_cast<unsigned>(t.in_groups));
  const bool to_array = t.splits > 1 || arrays.dw.is_dense_array();
  const auto launch = [&]<bool kToArray>() {
    const auto kernel = WeightGradientKernel<C, kToArray>;
    static const bool allowed = [&] {
      THIMBLE_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(kMaxSharedBytes)));
      return true;
    }();
    static_cast<void>(allowed);
    kernel<<<blocks, C::kThreads, SharedBytes(t, ExchangeFloats<C>()), stream>>>(
        g, t, As<Storage>(arrays.x), As<Storage>(arrays.dy),
        As<Storage>(t.splits > 1 ? Numbers(arrays.scratch) : arrays.dw.numbers), arrays.dw);
    THIMBLE_CUDA_LAUNCHED();
  };
  to_array ? launch.template operator()<true>() : launch.template operator()<false>();
  SumCopies(stream, g, t.splits, arrays);
}

// The same, for work that does not depend on math and channels.
template <class Visit>
auto WithAnyConfig(const WeightGradient& g, const Visit& visit) {
  return WithConfig<Math::kTf32, Channels::kFours>(g, visit);
}

}  // namespace

bool FitsWeightGradient(const WeightGradient& gradient) {
  return FitsBlocks(gradient) && WithAnyConfig(gradient, [&]<class C>() {
           const Tiling t = TilingOf(gradient, C::kOut, C::kIn);
           return FitsTiles(t) && SharedBytes(t, ExchangeFloats<C>()) <= kMaxSharedBytes;
         });
}

size_t WeightGradientScratchBytes(const WeightGradient& gradient) {
  const int splits = WithAnyConfig(
      gradient, [&]<class C>() { return TilingOf(gradient, C::kOut, C::kIn).splits; });
  return splits > 1 ? static_cast<size_t>(splits * gradient.range_elements()) * sizeof(float) : 0;
}

void LaunchWeightGradient(cudaStream_t stream, const WeightGradient& gradient, Math math,
                          const WeightGradientArrays& arrays) {
  const auto launch = [&]<class C>() { Launch<C>(stream, gradient, arrays); };
  const bool floats = arrays.x.is_float() && arrays.dy.is_float() && arrays.dw.numbers.is_float();
  if (math == Math::kFp32) {
    WithConfig<Math::kFp32, Channels::kOdd>(gradient, launch);
  } else if (!floats) {
    WithConfig<Math::kTf32, Channels::kAny>(gradient, launch);
  } else if (gradient.channels % 4 == 0 && gradient.out_channels % 4 == 0) {
    WithConfig<Math::kTf32, Channels::kFours>(gradient, launch);
  } else {
    WithConfig<Math::kTf32, Channels::kOdd>(gradient, launch);
  }
}

}  // namespace thimble
