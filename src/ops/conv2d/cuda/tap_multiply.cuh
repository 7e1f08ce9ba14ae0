// The half of a TapConvolution that multiplies the contents of slots in shared memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/device/cuda/math.h"
#include "thimble/device/cuda/tensor_core.cuh"
#include "thimble/ops/conv2d/cuda/tap_tile.cuh"

namespace thimble::tap {

template <class T>
struct Sums {
  float values[T::kBlocksM][T::kBlocksN][4] = {};
};

// Loads the weights of one tap and eight words of channels from word `k` on; `weights` points to
// this warp's first result channel.
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
  } else if constexpr (T::kShort) {
    constexpr int kRowPitch = WeightTile<T, kLayout>::kRowPitch;
    const uint32_t address =
        SharedAddress(weights + (2 * k + RowOfLaneTransposedB(lane)) * kRowPitch +
                      ColumnOfLaneTransposedB(lane) / 2);
#pragma unroll
    for (int n = 0; n < T::kBlocksN; n += 2) {
      LoadTwoTransposedB(address + static_cast<uint32_t>(n * 8 * sizeof(typename T::Number)), b[n],
                         b[n + 1]);
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
      MultiplyAdd<typename T::Number>(pixels[first + m], weights[n], sums.values[m][n]);
    }
  }
}

// Adds the products of one tap and eight words of channels from word `k` on. `pixels` are addresses
// for LoadA.
template <class T, Weights kLayout>
__device__ void MultiplyTap(const uint32_t (&pixels)[T::kBlocksM], const float* weights, int k,
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

// The operands of a warp for one column of a window and eight words of channels: all lines that its
// rows of taps reach, and their weights.
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
          tap_weights + (row * kWindow + column) * WeightTile<T, kLayout>::kWords, k, weights[row]);
    }
  }
};

// Adds the products of one part for a window's taps; loads run one step ahead.
template <class T, Weights kLayout>
__device__ void MultiplyWindow(uint32_t pixels, uint32_t line_bytes, const float* weights,
                               Sums<T>& sums) {
  constexpr int kSteps = kWindow * kWordsPerPart / 8;
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

// MultiplyTap in fp32; `pixels` are positions in the tile of rows lane / 4 and lane / 4 + 8 of each
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

// Adds the products of one part for all taps of the item's grid.
template <class T, Weights kLayout, Taps kTaps>
__device__ void MultiplyPart(const TapGrid& grid, const TileArea& area, int step, int channels,
                             const float* tile, const float* weights, Sums<T>& sums) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_pixel = Multiplier() / T::kWarpsN * T::kWarpPixels;
  const int warp_channel = Multiplier() % T::kWarpsN * T::kWarpChannels;
  const float* warp_weights =
      weights + (kLayout == Weights::kSourceInner ? warp_channel * kPitch
                                                  : warp_channel / T::kNumbersPerWord);
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
  constexpr bool kTensorCores = T::kMath != Math::kFp32;
  constexpr int kPlaces = kTensorCores ? T::kBlocksM : 2 * T::kBlocksM;
  int places[kPlaces];
#pragma unroll
  for (int i = 0; i < kPlaces; ++i) {
    places[i] = place_of(kTensorCores ? i * 16 + RowOfLaneA(lane) : i * 8 + lane / 4);
  }
  for (int t = 0; t < grid.num_taps; ++t) {
    const float* moved = tile + (grid.taps[t].row * area.columns + grid.taps[t].column) * kPitch;
    const float* tap_weights = warp_weights + t * WeightTile<T, kLayout>::kWords;
    if constexpr (kTensorCores) {
      uint32_t addresses[kPlaces];
#pragma unroll
      for (int i = 0; i < kPlaces; ++i) {
        addresses[i] = SharedAddress(moved + places[i] * kPitch + ColumnOfLaneA(lane));
      }
      MultiplyTap<T, kLayout>(addresses, tap_weights, 0, sums);
      if (channels > 8 * T::kNumbersPerWord) {
        MultiplyTap<T, kLayout>(addresses, tap_weights, 8, sums);
      }
    } else {
      for (int k = 0; k < channels; k += 8) {
        MultiplyFp32<T, kLayout>(moved, places, tap_weights, k, sums);
      }
    }
  }
}

// Multiplies the contents of the slots. Results is FloatResults or ShortResults: Begin may load
// what is added to an item's sums while its last part is multiplied, Store adds and stores.
template <class T, Weights kLayout, Taps kTaps, class Results>
__device__ void DrainSlots(const TapConvolution& c, int slots, const float* shared, Results results,
                           Handovers& handovers) {
  const Items<T> items(c);
  const TileArea area = AreaOf<T>(c);
  const int slot_words = SlotWords<T>(c);
  const int tile_words = T::kImages * area.pixels() * kPitch;
  Sums<T> sums;
  Part<T> part(c, items);
  for (bool more = true; more; more = part.Advance(c, items, slots)) {
    const float* tile = shared + part.slot * slot_words;
    if (part.Last(c)) results.Begin(part.item);
    handovers.full[part.slot].Wait(part.odd);
    // Whole blocks of eight words; missing channels are zero.
    const int channels = min(T::kPartChannels, c.channels - part.channel);
    MultiplyPart<T, kLayout, kTaps>(c.grids[part.item.grid], area, c.step, channels, tile,
                                    tile + tile_words, sums);
    handovers.empty[part.slot].Arrive();
    if (!part.Last(c)) continue;
    results.Store(part.item, sums);
    sums = {};
  }
}

}  // namespace thimble::tap
