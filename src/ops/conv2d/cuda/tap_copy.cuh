// The half of a TapConvolution that copies: source pixels and weights go from global memory through
// registers, where they are rounded, into slots of shared memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/device/cuda/tensor_core.cuh"
#include "thimble/ops/conv2d/cuda/math.h"
#include "thimble/ops/conv2d/cuda/tap_tile.cuh"

namespace thimble::tap {

// Loads four floats; only the first `valid` exist, the others become zero.
template <Channels kChannels>
__device__ float4 LoadFour(const float* from, int valid) {
  float4 four = make_float4(0, 0, 0, 0);
  if constexpr (kChannels == Channels::kFours) {
    if (valid > 0) four = __ldg(reinterpret_cast<const float4*>(from));
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
template <class T, Math kMath, Channels kChannels, Weights kLayout, Taps kTaps>
struct WeightCopy {
  using W = WeightTile<T, kLayout>;
  static constexpr int kTapsAtOnce = T::kThreads / W::kGroups;
  static_assert(T::kThreads % W::kGroups == 0);
  static constexpr int kGroupsInRow = W::kRowFloats / 4;
  static constexpr int kBatch = kSmallBatches<T, kTaps> ? 2 : 5;

  __device__ static int Row() {
    const int row = ThreadOfRole<T>() % W::kGroups / kGroupsInRow;
    return W::kBySource ? RowInOtherBanks(row) : row;
  }
  __device__ static int Inner() { return ThreadOfRole<T>() % kGroupsInRow * 4; }
  __device__ static int Place() { return Row() * W::kRowPitch + Inner(); }
  __device__ static int FirstTap() { return ThreadOfRole<T>() / W::kGroups; }
  __device__ static int Batches(const TapGrid& grid) {
    return (grid.num_taps + kBatch * kTapsAtOnce - 1) / (kBatch * kTapsAtOnce);
  }

  float4 fours[kBatch];

  __device__ void Load(const TapConvolution& c, const TapGrid& grid, const float* weights,
                       int first_result, int first_channel, int batch) {
    const int n = first_result + (W::kBySource ? Row() : Inner());
    const int k = first_channel + (W::kBySource ? Inner() : Row());
    const int valid = n >= c.out_channels || k >= c.channels ? 0
                      : W::kBySource                         ? c.channels - k
                                                             : c.out_channels - n;
    const float* from = weights + (valid > 0 ? n * c.n_stride + k * c.k_stride : 0);
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
      StoreFour<kMath>(tile + Place() + tap * W::kFloats, fours[i]);
    }
  }
};

// Records which weights each slot holds. Slots are used in turn: the last entry is the oldest.
class SlotWeights {
 public:
  // Returns whether the slot for a part does not hold the part's weights yet, and records that it
  // now does.
  __device__ bool Change(int weights, int slots) {
    bool same = false;
#pragma unroll
    for (int i = kMaxSlots - 1; i >= 0; --i) {
      same = i == slots - 1 ? weights == present_[i] : same;
      present_[i] = i > 0 ? present_[i - 1] : weights;
    }
    return !same;
  }

 private:
  int present_[kMaxSlots] = {-1, -1, -1, -1};
};

// Copies the source pixels of an item, batch by batch. Their addresses are computed once for all
// parts, in a table in shared memory.
template <class T, Math kMath, Channels kChannels, Taps kTaps>
struct SourceCopy {
  static constexpr unsigned kOutside = ~0U;
  static constexpr int kLanes = kChannelsPerPart / 4;  // threads that share a pixel
  static constexpr int kPixelsAtOnce = T::kThreads / kLanes;
  static constexpr int kBatch = kSmallBatches<T, kTaps> ? 4 : 7;

  __device__ static int LaneChannel() { return ThreadOfRole<T>() % kLanes * 4; }
  __device__ static int FirstPixel() { return RowInOtherBanks(ThreadOfRole<T>() / kLanes); }

  __device__ static int Batches(int pixels) {
    return (pixels + kBatch * kPixelsAtOnce - 1) / (kBatch * kPixelsAtOnce);
  }

  // Floats from the item's first image to each pixel of the tile, or kOutside.
  __device__ static void Locate(const TapConvolution& c, const TileArea& area, const Item& item,
                                unsigned* offsets) {
    const TapGrid& grid = c.grids[item.grid];
    const int scale = c.step * c.load_step;
    const unsigned columns = static_cast<unsigned>(area.columns);
    const unsigned pixels = static_cast<unsigned>(area.pixels());
    SyncCopiers<T>();  // no thread reads the table any more
    for (unsigned i = threadIdx.x % T::kThreads; i < T::kImages * pixels; i += T::kThreads) {
      const int image = static_cast<int>(i / pixels);
      const unsigned pixel = i % pixels;
      const int row =
          grid.first_row + item.row * scale + static_cast<int>(pixel / columns) * c.load_step;
      const int column =
          grid.first_column + item.column * scale + static_cast<int>(pixel % columns) * c.load_step;
      // As unsigned, a negative number is large.
      const bool inside = static_cast<unsigned>(row) < static_cast<unsigned>(c.height) &&
                          static_cast<unsigned>(column) < static_cast<unsigned>(c.width) &&
                          item.image + image < c.batch;
      const int offset = ((image * c.height + row) * c.width + column) * c.channels;
      offsets[i] = inside ? static_cast<unsigned>(offset) : kOutside;
    }
    SyncCopiers<T>();
  }

  float4 fours[kBatch];

  // `images` is the item's first image.
  __device__ void Load(const TapConvolution& c, int pixels, const unsigned* offsets,
                       const float* images, int first_channel, int batch) {
    const int channel = first_channel + LaneChannel();
    const float* lane_images = images + channel;
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
      StoreFour<kMath>(tile + pixel * kPitch + LaneChannel(), fours[i]);
    }
  }
};

// Fills slots with the block's parts. The first batches of both factors, which are all batches for
// a window, are loaded before the slot has to be empty.
template <class T, Math kMath, Channels kChannels, Weights kLayout, Taps kTaps>
__device__ void FillSlots(const TapConvolution& c, int slots, const float* source,
                          const float* weights, float* shared, Handovers& handovers) {
  const Items<T> items(c);
  const TileArea area = AreaOf<T>(c);
  const int pixels = T::kImages * area.pixels();
  const int slot_floats = SlotFloats<T>(c);
  const int64_t image_floats = static_cast<int64_t>(c.height) * c.width * c.channels;
  unsigned* offsets = reinterpret_cast<unsigned*>(shared + slots * slot_floats);
  SlotWeights slot_weights;
  SourceCopy<T, kMath, kChannels, kTaps> source_copy;
  WeightCopy<T, kMath, kChannels, kLayout, kTaps> weight_copy;
  Part<T> part(c, items);
  int count = 0;
  for (bool more = true; more; more = part.Advance(c, items, slots), ++count) {
    const Item& item = part.item;
    const TapGrid& grid = c.grids[item.grid];
    float* tile = shared + part.slot * slot_floats;
    float* weight_tile = tile + pixels * kPitch;
    const float* images = source + item.image * image_floats;
    if (part.channel == 0 && grid.num_taps > 0) source_copy.Locate(c, area, item, offsets);
    const int source_batches = grid.num_taps > 0 ? source_copy.Batches(pixels) : 0;
    const int weight_batches =
        slot_weights.Change(part.Weights(c), slots) ? weight_copy.Batches(grid) : 0;
    const auto load_source = [&](int batch) {
      source_copy.Load(c, pixels, offsets, images, part.channel, batch);
    };
    const auto load_weights = [&](int batch) {
      weight_copy.Load(c, grid, weights, item.result, part.channel, batch);
    };
    if (source_batches > 0) load_source(0);
    if (weight_batches > 0) load_weights(0);
    if (count >= slots) handovers.empty[part.slot].Wait(!part.odd);
    if (source_batches > 0) source_copy.Store(pixels, 0, tile);
    if (weight_batches > 0) weight_copy.Store(grid, 0, weight_tile);
    for (int batch = 1; batch < source_batches; ++batch) {
      load_source(batch);
      source_copy.Store(pixels, batch, tile);
    }
    for (int batch = 1; batch < weight_batches; ++batch) {
      load_weights(batch);
      weight_copy.Store(grid, batch, weight_tile);
    }
    handovers.full[part.slot].Arrive();
  }
}

}  // namespace thimble::tap
