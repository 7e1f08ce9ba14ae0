// The weights of all taps are computed first, as floats in scratch: (B, T, H, K), zero at padded
// positions. Forward and dx are then convolutions with these weights.
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/device/cuda/warp.cuh"
#include "thimble/ops/dropout/weight_dropout.cuh"
#include "thimble/ops/dynamic_conv/dynamic_conv.h"
#include "thimble/ops/dynamic_conv/sizes.h"

namespace thimble {
namespace {

// DynamicConvSizes as GPU code takes them.
struct ConvSizes {
  int64_t batch;
  int positions, channels, heads, taps, before, head_channels;

  explicit ConvSizes(const DynamicConvSizes& sizes)
      : batch(sizes.batch),
        positions(static_cast<int>(sizes.positions)),
        channels(static_cast<int>(sizes.channels)),
        heads(static_cast<int>(sizes.heads)),
        taps(static_cast<int>(sizes.taps)),
        before(static_cast<int>(sizes.before)),
        head_channels(static_cast<int>(sizes.head_channels())) {}

  // Rows of taps: one for each position and head.
  __host__ __device__ int64_t rows() const { return batch * positions * heads; }
  __device__ int64_t Channel(int64_t b, int t, int h) const {
    return (b * positions + t) * channels + h * head_channels;
  }
  __device__ bool IsLength(int length) const { return length >= 0 && length <= positions; }
};

// A row of taps.
struct TapRow {
  int64_t b;
  int t, h;

  __device__ TapRow(const ConvSizes& sizes, int64_t row)
      : b(row / sizes.heads / sizes.positions),
        t(static_cast<int>(row / sizes.heads % sizes.positions)),
        h(static_cast<int>(row % sizes.heads)) {}
  // The index of the first weight within its sample.
  __device__ int64_t Drawn(const ConvSizes& sizes) const {
    return (int64_t{t} * sizes.heads + h) * sizes.taps;
  }
};

constexpr int kTapWarps = 8;
constexpr int kTapThreads = kTapWarps * kWarpLanes;

__device__ int64_t TapRowOfWarp() {
  return int64_t{blockIdx.x} * kTapWarps + threadIdx.x / kWarpLanes;
}
unsigned BlocksForTapRows(const ConvSizes& sizes) {
  return static_cast<unsigned>((sizes.rows() - 1) / kTapWarps + 1);
}

// Calls visit(k) for the lane's taps.
template <class Visit>
__device__ void ForEachTap(int taps, const Visit& visit) {
  for (int k = static_cast<int>(threadIdx.x) % kWarpLanes; k < taps; k += kWarpLanes) visit(k);
}

// What turns logits into probabilities: exp(logit - largest) * inverse.
struct TapSoftmax {
  float largest, inverse;

  // Called by all lanes. `logits` are those of the row.
  template <class Pointer>
  __device__ TapSoftmax(const Pointer& logits, int taps) : largest(-INFINITY) {
    ForEachTap(taps, [&](int k) { largest = fmaxf(largest, LoadNumber(logits + k)); });
    largest = WarpMax(largest);
    float sum = 0;
    ForEachTap(taps, [&](int k) { sum += expf(LoadNumber(logits + k) - largest); });
    inverse = 1 / WarpSum(sum);
  }
  __device__ float operator()(float logit) const { return expf(logit - largest) * inverse; }
};

// A warp for each row of taps.
__global__ void __launch_bounds__(kTapThreads)
    TapWeightsKernel(ConvSizes sizes, WeightDraw dropout, InNumbers<AnyNumber> logits,
                     const int32_t* lengths, float* weights) {
  WaitForKernelsBefore();
  const int64_t row = TapRowOfWarp();
  if (row >= sizes.rows()) return;  // the whole warp
  const TapRow place(sizes, row);
  float* to = weights + row * sizes.taps;
  if (place.t >= lengths[place.b]) {
    ForEachTap(sizes.taps, [&](int k) { to[k] = 0; });
    return;
  }
  const auto from = logits + row * sizes.taps;
  const TapSoftmax softmax(from, sizes.taps);
  ForEachTap(sizes.taps, [&](int k) {
    const float factor = dropout.Factor(place.b, place.Drawn(sizes) + k);
    // As the formula has it: a weight that is dropped is zero even if it is NaN.
    to[k] = factor == 0 ? 0.0F : softmax(LoadNumber(from + k)) * factor;
  });
}

// ---- Convolution: a block takes the channels of a head, or some of them, and all positions of a
// sentence, a tile after the other. The rows of a tile and of the taps around it are in shared
// memory before the tile's results are stored, so that they may overwrite the source.

constexpr int kTilePositions = 32;
constexpr int kPositionsOfThread = 8;
constexpr int kPositionGroups = kTilePositions / kPositionsOfThread;
constexpr int kMostTileChannels = 64;
// Weights of one tap follow each other by position, shifted by four banks from tap to tap.
constexpr int kWeightPitch = kTilePositions + 4;
// What every GPU has.
constexpr size_t kMostConvSharedBytes = size_t{160} << 10;

struct ConvTile {
  int channels;  // of a block: a power of two
  int chunks;    // blocks of a head

  __host__ __device__ int threads() const { return channels * kPositionGroups; }
  __host__ __device__ static int Rows(int taps) { return kTilePositions + taps - 1; }
  size_t SharedBytes(int taps) const {
    const auto rows = static_cast<size_t>(Rows(taps)) * static_cast<size_t>(channels);
    return sizeof(float) * (rows + static_cast<size_t>(taps) * kWeightPitch);
  }
};

// As many channels as fit; none if one does not.
ConvTile ConvTileFor(int taps, int head_channels) {
  ConvTile tile{kMostTileChannels, 0};
  while (tile.channels > 8 && tile.channels / 2 >= head_channels) tile.channels /= 2;
  while (tile.channels > 8 && tile.SharedBytes(taps) > kMostConvSharedBytes) tile.channels /= 2;
  tile.chunks = (head_channels + tile.channels - 1) / tile.channels;
  return tile;
}

// The weight of tap j of result s: that of forward, or, reversed, that with which s was read.
template <bool kReversed>
__device__ float WeightOf(const ConvSizes& sizes, const float* weights, int64_t b, int h, int s,
                          int j, int length) {
  const int t = kReversed ? s + j - (sizes.taps - 1 - sizes.before) : s;
  const int k = kReversed ? sizes.taps - 1 - j : j;
  if (t < 0 || t >= length) return 0;
  return weights[((b * sizes.positions + t) * sizes.heads + h) * sizes.taps + k];
}

// Blocks: x over sentences and heads, y over chunks of channels.
template <class Storage, bool kReversed>
__global__ void __launch_bounds__(kMostTileChannels* kPositionGroups)
    ConvolveKernel(ConvSizes sizes, ConvTile tile, const float* weights, const int32_t* lengths,
                   InNumbers<Storage> source, OutNumbers<Storage> result) {
  extern __shared__ float shared[];
  WaitForKernelsBefore();
  const int64_t b = blockIdx.x / sizes.heads;
  const int h = static_cast<int>(blockIdx.x) % sizes.heads;
  const int length = lengths[b];
  const bool valid = sizes.IsLength(length);
  const int before = kReversed ? sizes.taps - 1 - sizes.before : sizes.before;
  const int channel = static_cast<int>(threadIdx.x) % tile.channels;
  const int group = static_cast<int>(threadIdx.x) / tile.channels;
  const int in_head = static_cast<int>(blockIdx.y) * tile.channels + channel;
  const bool exists = in_head < sizes.head_channels;
  const int num_rows = ConvTile::Rows(sizes.taps);
  float* tap_weights = shared + num_rows * tile.channels;
  const auto at = [&](int t) { return sizes.Channel(b, t, h) + in_head; };
  for (int first = 0; first < sizes.positions; first += kTilePositions) {
    __syncthreads();  // the tile before is no longer read
    // Rows that the tile before has too were perhaps overwritten: they move, in ascending order.
    const int kept = first == 0 ? 0 : sizes.taps - 1;
    for (int row = group; row < num_rows; row += kPositionGroups) {
      if (row < kept) continue;
      const int t = first - before + row;
      const bool inside = exists && t >= 0 && t < length && valid;
      shared[row * tile.channels + channel] = inside ? LoadNumber(source + at(t)) : 0.0F;
    }
    for (int i = static_cast<int>(threadIdx.x); i < sizes.taps * kTilePositions;
         i += tile.threads()) {
      const int j = i / kTilePositions;
      const int s = first + i % kTilePositions;
      tap_weights[j * kWeightPitch + i % kTilePositions] =
          WeightOf<kReversed>(sizes, weights, b, h, s, j, length);
    }
    __syncthreads();
    float sums[kPositionsOfThread] = {};
    const float* rows = shared + group * kPositionsOfThread * tile.channels + channel;
    const float* of_group = tap_weights + group * kPositionsOfThread;
    for (int j = 0; j < sizes.taps; ++j) {
#pragma unroll
      for (int p = 0; p < kPositionsOfThread; ++p) {
        sums[p] = fmaf(of_group[j * kWeightPitch + p], rows[(j + p) * tile.channels], sums[p]);
      }
    }
#pragma unroll
    for (int p = 0; p < kPositionsOfThread; ++p) {
      const int s = first + group * kPositionsOfThread + p;
      if (!exists || s >= sizes.positions) continue;
      const float sum = s < length ? sums[p] : 0.0F;
      StoreNumber(valid ? sum : nanf(""), result + at(s));
    }
    // The last rows of this tile become the first ones of the next. Each thread moves its channel:
    // rows in ascending order, so that none is overwritten before it has moved.
    __syncthreads();
    if (group == 0) {
      for (int row = 0; row < sizes.taps - 1; ++row) {
        shared[row * tile.channels + channel] =
            shared[(row + kTilePositions) * tile.channels + channel];
      }
    }
  }
}

// ---- dlogits: a warp for each row of taps.

template <class Storage>
struct LogitGradient {
  InNumbers<Storage> x;   // (B, T, C)
  InNumbers<Storage> dy;  // (B, T, C)
};

// The product of dy at a position with x at the position that a tap reads, by all lanes.
template <class Storage>
__device__ float TapProduct(const ConvSizes& sizes, const LogitGradient<Storage>& arrays,
                            int64_t at_x, int64_t at_dy) {
  float product = 0;
  for (int c = static_cast<int>(threadIdx.x) % kWarpLanes; c < sizes.head_channels;
       c += kWarpLanes) {
    product = fmaf(LoadNumber(arrays.x + (at_x + c)), LoadNumber(arrays.dy + (at_dy + c)), product);
  }
  return WarpSum(product);
}

// Lane k % 32 has the derivative by weight k in `derivatives`, (K) of each warp. dlogits may be
// logits.
template <class Storage>
__global__ void __launch_bounds__(kTapThreads)
    LogitGradientKernel(ConvSizes sizes, WeightDraw dropout, LogitGradient<Storage> arrays,
                        InNumbers<AnyNumber> logits, const int32_t* lengths,
                        OutNumbers<AnyNumber> dlogits) {
  extern __shared__ float shared[];
  WaitForKernelsBefore();
  const int64_t row = TapRowOfWarp();
  if (row >= sizes.rows()) return;  // the whole warp
  const TapRow place(sizes, row);
  const int length = lengths[place.b];
  const auto to = dlogits + row * sizes.taps;
  if (place.t >= length || !sizes.IsLength(length)) {
    const float fill = sizes.IsLength(length) ? 0.0F : nanf("");
    ForEachTap(sizes.taps, [&](int k) { StoreNumber(fill, to + k); });
    return;
  }
  float* derivatives = shared + threadIdx.x / kWarpLanes * sizes.taps;
  const int64_t at_dy = sizes.Channel(place.b, place.t, place.h);
  for (int k = 0; k < sizes.taps; ++k) {
    const int t = place.t + k - sizes.before;
    const bool reaches = t >= 0 && t < length;
    const float product =
        reaches ? TapProduct(sizes, arrays, sizes.Channel(place.b, t, place.h), at_dy) : 0.0F;
    if (k % kWarpLanes == static_cast<int>(threadIdx.x) % kWarpLanes) derivatives[k] = product;
  }
  const auto from = logits + row * sizes.taps;
  const TapSoftmax softmax(from, sizes.taps);
  float mean = 0;
  ForEachTap(sizes.taps, [&](int k) {
    const float factor = dropout.Factor(place.b, place.Drawn(sizes) + k);
    derivatives[k] = factor == 0 ? 0.0F : derivatives[k] * factor;
    mean = fmaf(softmax(LoadNumber(from + k)), derivatives[k], mean);
  });
  mean = WarpSum(mean);
  // The mean is subtracted twice: see softmax_formula.h.
  float error = 0;
  ForEachTap(sizes.taps, [&](int k) {
    derivatives[k] -= mean;
    error = fmaf(softmax(LoadNumber(from + k)), derivatives[k], error);
  });
  error = WarpSum(error);
  ForEachTap(sizes.taps, [&](int k) {
    StoreNumber(softmax(LoadNumber(from + k)) * (derivatives[k] - error), to + k);
  });
}

// ---- Launches

ConvSizes ConvSizesOf(const KernelCall& call) {
  return ConvSizes(DynamicConvSizes(call.in_shape(0), call.in_shape(1), call.attributes));
}

float* TapWeightsOf(const KernelCall& call) {
  return reinterpret_cast<float*>(call.scratch.data());  // NOLINT: raw storage
}

void LaunchTapWeights(const KernelCall& call, const ConvSizes& sizes, size_t samples_input) {
  TapWeightsKernel<<<BlocksForTapRows(sizes), kTapThreads, 0, call.stream>>>(
      sizes, WeightDraw(call, samples_input), ConstNumbersOf(call.inputs[1]), call.In<int32_t>(2),
      TapWeightsOf(call));
  THIMBLE_CUDA_LAUNCHED();
}

template <bool kReversed>
void LaunchDynamicConvolution(const KernelCall& call, const ConvSizes& sizes,
                              const TensorView& source, const TensorView& result) {
  if (sizes.channels == 0) return;
  const ConvTile tile = ConvTileFor(sizes.taps, sizes.head_channels);
  const dim3 blocks(static_cast<unsigned>(sizes.batch * sizes.heads),
                    static_cast<unsigned>(tile.chunks));
  WithCommonStorage(std::array{source.dtype, result.dtype}, [&](auto type) {
    using Storage = decltype(type);
    const auto kernel = ConvolveKernel<Storage, kReversed>;
    static const bool prepared = [&] {
      THIMBLE_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(kMostConvSharedBytes)));
      return true;
    }();
    static_cast<void>(prepared);
    kernel<<<blocks, static_cast<unsigned>(tile.threads()), tile.SharedBytes(sizes.taps),
             call.stream>>>(sizes, tile, TapWeightsOf(call), call.In<int32_t>(2),
                            As<Storage>(ConstNumbersOf(source)), As<Storage>(NumbersOf(result)));
    THIMBLE_CUDA_LAUNCHED();
  });
}

void LaunchLogitGradient(const KernelCall& call, const ConvSizes& sizes) {
  const size_t shared_bytes = kTapWarps * static_cast<size_t>(sizes.taps) * sizeof(float);
  WithCommonStorage(std::array{call.inputs[0].dtype, call.inputs[3].dtype}, [&](auto type) {
    using Storage = decltype(type);
    LogitGradientKernel<Storage>
        <<<BlocksForTapRows(sizes), kTapThreads, shared_bytes, call.stream>>>(
            sizes, WeightDraw(call, 4),
            LogitGradient<Storage>{As<Storage>(ConstNumbersOf(call.inputs[0])),
                                   As<Storage>(ConstNumbersOf(call.inputs[3]))},
            ConstNumbersOf(call.inputs[1]), call.In<int32_t>(2), NumbersOf(call.outputs[1]));
    THIMBLE_CUDA_LAUNCHED();
  });
}

// One float for each logit.
size_t TapWeightBytes(const OpCall& call) {
  return static_cast<size_t>(call.inputs[1].elements()) * sizeof(float);
}

std::string_view DeclinesTaps(const OpCall& call) {
  const DynamicConvSizes sizes(call.inputs[0], call.inputs[1], call.attributes);
  // Their weights and rows must fit into shared memory.
  constexpr int64_t kMostTaps = 896;
  return sizes.taps <= kMostTaps ? "" : "too many taps";
}

}  // namespace

std::string_view DynamicConvCuda::Declines(const OpCall& call) { return DeclinesTaps(call); }
size_t DynamicConvCuda::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return TapWeightBytes(call);
}

void DynamicConvCuda::Run(const KernelCall& call) {
  if (call.in_shape(1).elements() == 0) return;
  const ConvSizes sizes = ConvSizesOf(call);
  LaunchTapWeights(call, sizes, 3);
  LaunchDynamicConvolution<false>(call, sizes, call.inputs[0], call.outputs[0]);
}

std::string_view DynamicConvGradCuda::Declines(const OpCall& call) { return DeclinesTaps(call); }
size_t DynamicConvGradCuda::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return TapWeightBytes(call);
}

// dlogits may overwrite logits, and dx x or dy: each is written when the others no longer read
// that.
void DynamicConvGradCuda::Run(const KernelCall& call) {
  if (call.out_shape(1).elements() == 0) return;
  const ConvSizes sizes = ConvSizesOf(call);
  LaunchTapWeights(call, sizes, 4);
  LaunchLogitGradient(call, sizes);
  LaunchDynamicConvolution<true>(call, sizes, call.inputs[3], call.outputs[0]);
}

}  // namespace thimble
