// The half of a TapConvolution that multiplies the contents of slots in shared memory and stores
// the results.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/device/cuda/tensor_core.cuh"
#include "thimble/ops/conv2d/cuda/math.h"
#include "thimble/ops/conv2d/cuda/tap_tile.cuh"

namespace thimble::tap {

template <class T>
struct Sums {
  float values[T::kBlocksM][T::kBlocksN][4] = {};
};

// Loads the weights of one tap and eight channels from `k` on; `weights` points to this warp's
// first result channel.
template <class T, Weights kLayout>
__device__ void LoadWeights(const float* weights, int k, TensorCoreB (&b)[T::kBlocksN]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
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
}

// Adds the products of `pixels` from line `first` on with one tap's weights.
template <class T, int kLines>
__device__ void MultiplyLines(const TensorCoreA (&pixels)[kLines], int first,
                              const TensorCoreB (&weights)[T::kBlocksN], Sums<T>& sums) {
#pragma unroll
  for (int m = 0; m < T::kBlocksM; ++m) {
#pragma unroll
    for (int n = 0; n < T::kBlocksN; ++n) {
      MultiplyAdd(pixels[first + m], weights[n], sums.values[m][n]);
    }
  }
}

// Adds the products of one tap and eight channels from `k` on. `pixels` are addresses for LoadA.
template <class T, Weights kLayout>
__device__ void MultiplyTf32(const uint32_t (&pixels)[T::kBlocksM], const float* weights, int k,
                             Sums<T>& sums) {
  TensorCoreA a[T::kBlocksM];
  TensorCoreB b[T::kBlocksN];
#pragma unroll
  for (int m = 0; m < T::kBlocksM; ++m) {
    LoadA(pixels[m] + static_cast<uint32_t>(k * sizeof(float)), a[m]);
  }
  LoadWeights<T, kLayout>(weights, k, b);
  MultiplyLines<T>(a, 0, b, sums);
}

// The operands of a warp for one column of a window and eight channels: all lines that its rows of
// taps reach, and their weights.
template <class T, Weights kLayout>
struct WindowColumn {
  TensorCoreA lines[T::kBlocksM + kWindow - 1];
  TensorCoreB weights[kWindow][T::kBlocksN];

  // `pixels` is the address of the first line, `line_bytes` the distance to the next.
  __device__ void Load(uint32_t pixels, uint32_t line_bytes, const float* tap_weights, int column,
                       int k) {
#pragma unroll
    for (int i = 0; i < T::kBlocksM + kWindow - 1; ++i) {
      LoadA(pixels + i * line_bytes + static_cast<uint32_t>((column * kPitch + k) * sizeof(float)),
            lines[i]);
    }
#pragma unroll
    for (int row = 0; row < kWindow; ++row) {
      LoadWeights<T, kLayout>(
          tap_weights + (row * kWindow + column) * WeightTile<T, kLayout>::kFloats, k,
          weights[row]);
    }
  }
};

// Adds the products of one part for a window's taps; loads run one step ahead.
template <class T, Weights kLayout>
__device__ void MultiplyWindow(uint32_t pixels, uint32_t line_bytes, const float* weights,
                               Sums<T>& sums) {
  constexpr int kSteps = kWindow * kChannelsPerPart / 8;
  WindowColumn<T, kLayout> loaded[2];
  loaded[0].Load(pixels, line_bytes, weights, 0, 0);
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const int next = step + 1;
    if (next < kSteps) {
      loaded[next % 2].Load(pixels, line_bytes, weights, next % kWindow, next / kWindow * 8);
    }
#pragma unroll
    for (int row = 0; row < kWindow; ++row) {
      MultiplyLines<T>(loaded[step % 2].lines, row, loaded[step % 2].weights[row], sums);
    }
  }
}

// The same in fp32; `pixels` are positions in the tile of rows lane / 4 and lane / 4 + 8 of each
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

// Two neighbouring result channels; only `valid` of them exist.
template <Channels kChannels>
__device__ float2 LoadPair(const float* from, int valid) {
  if constexpr (kChannels == Channels::kFours) {
    return valid > 0 ? *reinterpret_cast<const float2*>(from) : make_float2(0, 0);
  }
  return make_float2(valid > 0 ? from[0] : 0, valid > 1 ? from[1] : 0);
}
template <Channels kChannels>
__device__ void StorePair(float* to, int valid, const float2& pair) {
  if constexpr (kChannels == Channels::kFours) {
    if (valid > 0) *reinterpret_cast<float2*>(to) = pair;
  } else {
    if (valid > 0) to[0] = pair.x;
    if (valid > 1) to[1] = pair.y;
  }
}

// Calls visit(m, n, half, offset, valid) for this lane's sums: pairs of neighbouring result
// channels, `valid` of which exist, at an offset from the beginning of the result; eight
// neighbouring pixels of a block's halves, its lines downwards.
template <class T, class Visit>
__device__ void ForEachPair(const TapConvolution& c, const Item& item, const Visit& visit) {
  const TapGrid& grid = c.grids[item.grid];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_pixel = WarpOfRole<T>() / T::kWarpsN * T::kWarpPixels;
  const int channel = item.result + WarpOfRole<T>() % T::kWarpsN * T::kWarpChannels + lane % 4 * 2;
  const int64_t line_floats = static_cast<int64_t>(c.out_step) * c.out_width * c.out_channels;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const TilePixel place = T::PixelAt(warp_pixel + half * 8 + lane / 4);
    const int image = item.image + place.image;
    const int row = item.row + place.row;
    const int column = item.column + place.column;
    if (image >= c.batch || column >= grid.columns) continue;
    const int64_t out_row =
        static_cast<int64_t>(image) * c.out_height + grid.out_row + row * c.out_step;
    const int64_t first =
        channel + (out_row * c.out_width + grid.out_column + column * c.out_step) * c.out_channels;
#pragma unroll
    for (int m = 0; m < T::kBlocksM; ++m) {
      if (row + m >= grid.rows) break;
#pragma unroll
      for (int n = 0; n < T::kBlocksN; ++n) {
        visit(m, n, half, first + m * line_floats + n * 8, c.out_channels - channel - n * 8);
      }
    }
  }
}

// The values to add to this lane's sums.
template <class T, Channels kChannels>
__device__ void LoadOther(const TapConvolution& c, const Item& item, const float* other,
                          Sums<T>& added) {
  ForEachPair<T>(c, item, [&](int m, int n, int half, int64_t offset, int valid) {
    const float2 pair = LoadPair<kChannels>(other + offset, valid);
    added.values[m][n][2 * half] = pair.x;
    added.values[m][n][2 * half + 1] = pair.y;
  });
}

// `other` is null or added.
template <class T, Channels kChannels>
__device__ void StoreResult(const TapConvolution& c, const Item& item, const Sums<T>& sums,
                            const float* other, float* result) {
  ForEachPair<T>(c, item, [&](int m, int n, int half, int64_t offset, int valid) {
    float2 pair = make_float2(sums.values[m][n][2 * half], sums.values[m][n][2 * half + 1]);
    if (other != nullptr) {
      const float2 added = LoadPair<kChannels>(other + offset, valid);
      pair = make_float2(pair.x + added.x, pair.y + added.y);
    }
    StorePair<kChannels>(result + offset, valid, pair);
  });
}

template <class T>
__device__ void AddTo(Sums<T>& sums, const Sums<T>& added) {
#pragma unroll
  for (int m = 0; m < T::kBlocksM; ++m) {
#pragma unroll
    for (int n = 0; n < T::kBlocksN; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) sums.values[m][n][i] += added.values[m][n][i];
    }
  }
}

// Adds the products of one part for all taps of the item's grid.
template <class T, Math kMath, Weights kLayout, Taps kTaps>
__device__ void MultiplyPart(const TapGrid& grid, const TileArea& area, int step, int part,
                             const float* tile, const float* weights, Sums<T>& sums) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_pixel = WarpOfRole<T>() / T::kWarpsN * T::kWarpPixels;
  const int warp_channel = WarpOfRole<T>() % T::kWarpsN * T::kWarpChannels;
  const float* warp_weights =
      weights + warp_channel * (kLayout == Weights::kSourceInner ? kPitch : 1);
  const auto place_of = [&](int index) {
    const TilePixel pixel = T::PixelAt(warp_pixel + index);
    return pixel.image * area.pixels() + (pixel.row * area.columns + pixel.column) * step;
  };
  if constexpr (kTaps == Taps::kWindow) {
    MultiplyWindow<T, kLayout>(
        SharedAddress(tile + place_of(RowOfLaneA(lane)) * kPitch + ColumnOfLaneA(lane)),
        static_cast<uint32_t>(area.columns * kPitch * sizeof(float)), warp_weights, sums);
    return;
  }
  constexpr int kPlaces = kMath == Math::kTf32 ? T::kBlocksM : 2 * T::kBlocksM;
  int places[kPlaces];
#pragma unroll
  for (int i = 0; i < kPlaces; ++i) {
    places[i] = place_of(kMath == Math::kTf32 ? i * 16 + RowOfLaneA(lane) : i * 8 + lane / 4);
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
      MultiplyTf32<T, kLayout>(addresses, tap_weights, 0, sums);
      if (part > 8) MultiplyTf32<T, kLayout>(addresses, tap_weights, 8, sums);
    } else {
      for (int k = 0; k < part; k += 8) {
        MultiplyFp32<T, kLayout>(moved, places, tap_weights, k, sums);
      }
    }
  }
}

// Multiplies the contents of the slots and stores the results.
template <class T, Math kMath, Channels kChannels, Weights kLayout, Taps kTaps>
__device__ void DrainSlots(const TapConvolution& c, int slots, const float* shared,
                           const TapArrays& arrays, Handovers& handovers) {
  const Items<T> items(c);
  const TileArea area = AreaOf<T>(c);
  const int slot_floats = SlotFloats<T>(c);
  const int tile_floats = T::kImages * area.pixels() * kPitch;
  Sums<T> sums;
  // For a window, the values to add are loaded while the last part is multiplied; other kernels run
  // more blocks and have no registers for that.
  constexpr bool kAddedEarly = kTaps == Taps::kWindow;
  Sums<T> added;
  Part<T> part(c, items);
  for (bool more = true; more; more = part.Advance(c, items, slots)) {
    const float* tile = shared + part.slot * slot_floats;
    const bool adds = arrays.other != nullptr && part.Last(c);
    if (adds && kAddedEarly) LoadOther<T, kChannels>(c, part.item, arrays.other, added);
    handovers.full[part.slot].Wait(part.odd);
    // Whole blocks of eight; missing channels are zero.
    const int channels = min(kChannelsPerPart, c.channels - part.channel);
    MultiplyPart<T, kMath, kLayout, kTaps>(c.grids[part.item.grid], area, c.step, channels, tile,
                                           tile + tile_floats, sums);
    handovers.empty[part.slot].Arrive();
    if (!part.Last(c)) continue;
    if (adds && kAddedEarly) AddTo(sums, added);
    StoreResult<T, kChannels>(c, part.item, sums, kAddedEarly ? nullptr : arrays.other,
                              arrays.result);
    sums = {};
  }
}

}  // namespace thimble::tap
