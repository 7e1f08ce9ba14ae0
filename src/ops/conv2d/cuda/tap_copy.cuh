// Copies parts of floats: source pixels and weights go from global memory through registers, where
// they are rounded, into slots of shared memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/device/cuda/math.h"
#include "thimble/device/cuda/tensor_core.cuh"
#include "thimble/ops/conv2d/cuda/tap_copy_packed.cuh"
#include "thimble/ops/conv2d/cuda/tap_fill.cuh"
#include "thimble/ops/conv2d/cuda/tap_tile.cuh"

namespace thimble::tap {

// Loads four numbers; only the first `valid` exist, the others become zero.
template <Channels kChannels>
__device__ float4 LoadFour(InNumbers<FloatStorage<kChannels>> from, int valid) {
  float4 four = make_float4(0, 0, 0, 0);
  if constexpr (kChannels == Channels::kFours) {
    if (valid > 0) four = __ldg(reinterpret_cast<const float4*>(from));
  } else if constexpr (kChannels == Channels::kAny) {
    four = LoadSingly(from, valid);
  } else {
    if (valid > 0) four.x = __ldg(from);
    if (valid > 1) four.y = __ldg(from + 1);
    if (valid > 2) four.z = __ldg(from + 2);
    if (valid > 3) four.w = __ldg(from + 3);
  }
  return four;
}

template <Math kMath>
__device__ void StoreFour(float* to, const float4& four) {
  *reinterpret_cast<float4*>(to) = kMath == Math::kTf32 ? RoundToTf32(four) : four;
}

// A batch is what a thread loads before it stores. Large batches hold a window's whole tile, but
// with several blocks per multiprocessor there are not enough registers for them.
template <class T, Taps kTaps>
inline constexpr bool kSmallBatches = T::kThreads <= 128 && kTaps == Taps::kAny;

// Copies the weights of all taps of a grid for one tile of result channels and one part, in batches
// of taps. Each thread has its own group and some of the taps.
template <class T, Channels kChannels, Weights kLayout, Taps kTaps>
struct WeightCopy {
  using W = WeightTile<T, kLayout>;
  using In = InNumbers<FloatStorage<kChannels>>;
  static constexpr int kTapsAtOnce = T::kCopiers / W::kGroups;
  static_assert(T::kCopiers % W::kGroups == 0);
  static constexpr int kBatch = kSmallBatches<T, kTaps> ? 2 : 5;

  __device__ static int Row() {
    const int row = Copier<T>() % W::kGroups / W::kGroupsInRow;
    return W::kBySource ? RowInOtherBanks(row) : row;
  }
  __device__ static int Inner() { return Copier<T>() % W::kGroupsInRow * 4; }
  __device__ static int Place() { return Row() * W::kRowPitch + Inner(); }
  __device__ static int FirstTap() { return Copier<T>() / W::kGroups; }
  __device__ static int Batches(const TapGrid& grid) {
    return (grid.num_taps + kBatch * kTapsAtOnce - 1) / (kBatch * kTapsAtOnce);
  }

  float4 fours[kBatch];

  __device__ void Load(const TapConvolution& c, const TapGrid& grid, const In& weights,
                       int first_result, int first_channel, int batch) {
    const int n = first_result + (W::kBySource ? Row() : Inner());
    const int k = first_channel + (W::kBySource ? Inner() : Row());
    const int valid = n >= c.out_channels || k >= c.channels ? 0
                      : W::kBySource                         ? c.channels - k
                                                             : c.out_channels - n;
    const In from = weights + (valid > 0 ? n * c.n_stride + k * c.k_stride : 0);
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int tap = FirstTap() + (batch * kBatch + i) * kTapsAtOnce;
      if (tap >= grid.num_taps) break;
      fours[i] = LoadFour<kChannels>(from + grid.taps[tap].weight * c.t_stride, valid);
    }
  }

  __device__ void Store(const TapGrid& grid, int batch, float* tile) const {
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int tap = FirstTap() + (batch * kBatch + i) * kTapsAtOnce;
      if (tap >= grid.num_taps) break;
      StoreFour<T::kMath>(tile + Place() + tap * W::kWords, fours[i]);
    }
  }
};

// Copies the source pixels of a part, batch by batch.
template <class T, Channels kChannels, Taps kTaps>
struct SourceCopy {
  using In = InNumbers<FloatStorage<kChannels>>;
  static constexpr int kLanes = kWordsPerPart / kGroupWords;  // threads that share a pixel
  static constexpr int kPixelsAtOnce = T::kCopiers / kLanes;
  static constexpr int kBatch = kSmallBatches<T, kTaps> ? 4 : 7;

  __device__ static int LaneChannel() { return Copier<T>() % kLanes * 4; }
  __device__ static int FirstPixel() { return RowInOtherBanks(Copier<T>() / kLanes); }

  __device__ static int Batches(int pixels) {
    return (pixels + kBatch * kPixelsAtOnce - 1) / (kBatch * kPixelsAtOnce);
  }

  float4 fours[kBatch];

  // `images` is the item's first image.
  __device__ void Load(const TapConvolution& c, int pixels, const unsigned* offsets,
                       const In& images, int first_channel, int batch) {
    const int channel = first_channel + LaneChannel();
    const In lane_images = images + channel;
    const int first = FirstPixel() + batch * kBatch * kPixelsAtOnce;
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int pixel = first + i * kPixelsAtOnce;
      const unsigned offset = pixel < pixels ? offsets[pixel] : kOutside;
      fours[i] =
          LoadFour<kChannels>(lane_images + offset, offset == kOutside ? 0 : c.channels - channel);
    }
  }

  __device__ void Store(int pixels, int batch, float* tile) const {
    const int first = FirstPixel() + batch * kBatch * kPixelsAtOnce;
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int pixel = first + i * kPixelsAtOnce;
      if (pixel >= pixels) break;
      StoreFour<T::kMath>(tile + pixel * kPitch + LaneChannel(), fours[i]);
    }
  }
};

// How the parts of floats are copied. The first batches of both factors, which are all batches for
// a window, are loaded before the slot has to be empty.
template <class T, Channels kChannels, Weights kLayout, Taps kTaps, bool kPacked>
class FloatParts {
 public:
  static constexpr bool kPackedWeights = kPacked;

  __device__ FloatParts(const TapConvolution& c, const TapArrays& arrays)
      : c_(c),
        arrays_(arrays),
        source_(As<FloatStorage<kChannels>>(arrays.source)),
        weights_(As<FloatStorage<kChannels>>(arrays.weights)) {}

  __device__ void Begin(const PartPlace<T>& place) {
    source_batches_ = place.grid().num_taps > 0 ? source_copy_.Batches(place.pixels) : 0;
    weight_batches_ = !kPacked && place.other_weights ? weight_copy_.Batches(place.grid()) : 0;
    if constexpr (kPacked) {
      if (place.other_weights) packed_copy_.Begin(place, arrays_);
    }
    if (source_batches_ > 0) LoadSource(place, 0);
    if (weight_batches_ > 0) LoadWeights(place, 0);
  }
  __device__ void Finish(const PartPlace<T>& place, float* tile, float* weight_tile) {
    const auto store_source = [&] {
      if (source_batches_ > 0) source_copy_.Store(place.pixels, 0, tile);
    };
    if (kPacked && place.other_weights) {
      packed_copy_.Finish(place, arrays_, weight_tile, store_source);
    } else {
      store_source();
    }
    if (weight_batches_ > 0) weight_copy_.Store(place.grid(), 0, weight_tile);
    for (int batch = 1; batch < source_batches_; ++batch) {
      LoadSource(place, batch);
      source_copy_.Store(place.pixels, batch, tile);
    }
    for (int batch = 1; batch < weight_batches_; ++batch) {
      LoadWeights(place, batch);
      weight_copy_.Store(place.grid(), batch, weight_tile);
    }
  }
  __device__ void Arrive(Handover& full) const { full.Arrive(); }

 private:
  __device__ void LoadSource(const PartPlace<T>& place, int batch) {
    source_copy_.Load(c_, place.pixels, place.offsets, source_ + place.first_element(),
                      place.part.channel, batch);
  }
  __device__ void LoadWeights(const PartPlace<T>& place, int batch) {
    weight_copy_.Load(c_, place.grid(), weights_, place.part.item.result, place.part.channel,
                      batch);
  }

  const TapConvolution& c_;
  const TapArrays& arrays_;
  InNumbers<FloatStorage<kChannels>> source_;
  InNumbers<FloatStorage<kChannels>> weights_;
  SourceCopy<T, kChannels, kTaps> source_copy_;
  WeightCopy<T, kChannels, kLayout, kTaps> weight_copy_;
  PackedCopy<T, kLayout> packed_copy_;
  int source_batches_ = 0;
  int weight_batches_ = 0;
};

}  // namespace thimble::tap
