// The kernel of a TapConvolution and its launch.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "thimble/device/cuda/check.h"
#include "thimble/ops/conv2d/cuda/math.h"
#include "thimble/ops/conv2d/cuda/tap_convolution.h"
#include "thimble/ops/conv2d/cuda/tap_copy.cuh"
#include "thimble/ops/conv2d/cuda/tap_multiply.cuh"
#include "thimble/ops/conv2d/cuda/tap_tile.cuh"

namespace thimble::tap {

// Blocks per multiprocessor: as many as the registers allow.
template <class T, Taps kTaps>
inline constexpr int kMostBlocks = T::kThreads > 128        ? 1
                                   : kTaps == Taps::kWindow ? 2
                                                            : 3;

template <class T, Math kMath, Channels kChannels, Weights kLayout, Taps kTaps>
__global__ void __launch_bounds__(2 * T::kThreads, kMostBlocks<T, kTaps>)
    TapConvolutionKernel(const __grid_constant__ TapConvolution c, int slots, TapArrays arrays) {
  extern __shared__ float shared[];
  __shared__ Handovers handovers;
  handovers.Make<T>();
  if (threadIdx.x >= T::kThreads) {
    FillSlots<T, kMath, kChannels, kLayout, kTaps>(c, slots, arrays.source, arrays.weights, shared,
                                                   handovers);
  } else {
    DrainSlots<T, kMath, kChannels, kLayout, kTaps>(c, slots, shared, arrays, handovers);
  }
}

// The number of slots, at most `fitting`. If an item has few parts, each keeps its slot, and its
// weights stay there.
inline int SlotsFor(const TapConvolution& c, int fitting) {
  const int slots = std::clamp(fitting, 1, kMaxSlots);
  const int parts = std::max(1, (c.channels + kChannelsPerPart - 1) / kChannelsPerPart);
  return parts <= slots ? slots / parts * parts : slots;
}

template <class T, Math kMath, Channels kChannels, Weights kLayout, Taps kTaps>
void Launch(cudaStream_t stream, const TapConvolution& c, const TapArrays& arrays) {
  const auto kernel = TapConvolutionKernel<T, kMath, kChannels, kLayout, kTaps>;
  const int items = Items<T>(c).count;
  if (items == 0) return;
  struct Device {
    int multiprocessors, shared_bytes;
  };
  static const Device device = [&] {
    int id = 0;
    Device d{};
    THIMBLE_CUDA(cudaGetDevice(&id));
    THIMBLE_CUDA(cudaDeviceGetAttribute(&d.multiprocessors, cudaDevAttrMultiProcessorCount, id));
    THIMBLE_CUDA(
        cudaDeviceGetAttribute(&d.shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, id));
    d.shared_bytes -= static_cast<int>(sizeof(Handovers));
    THIMBLE_CUDA(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, d.shared_bytes));
    return d;
  }();
  // As many blocks as run at once; neither their number nor that of slots changes the result.
  const int slot_bytes = static_cast<int>(SlotBytes<T>(c));
  const int table_bytes = static_cast<int>(TableBytes<T>(c));
  const auto slots_with = [&](int blocks) {
    // The system reserves a kilobyte of each block.
    const int own = static_cast<int>(sizeof(Handovers));
    const int bytes =
        blocks == 1 ? device.shared_bytes : (device.shared_bytes + own) / blocks - 1024 - own;
    return (bytes - table_bytes) / slot_bytes;
  };
  int at_once = kMostBlocks<T, kTaps>;
  while (at_once > 1 && slots_with(at_once) < 2) --at_once;
  const int slots = SlotsFor(c, slots_with(at_once));
  const int blocks = std::min(items, at_once * device.multiprocessors);
  kernel<<<static_cast<unsigned>(blocks), 2 * T::kThreads,
           static_cast<size_t>(slots * slot_bytes + table_bytes), stream>>>(c, slots, arrays);
  THIMBLE_CUDA_LAUNCHED();
}

// Whether the sorted taps form a window that moves by one pixel per position.
inline bool IsWindow(const TapConvolution& c) {
  if (c.step != 1 || c.num_grids != 1 || c.grids[0].num_taps != kWindow * kWindow) return false;
  for (int i = 0; i < kWindow * kWindow; ++i) {
    const Tap& tap = c.grids[0].taps[i];
    if (tap.row != i / kWindow || tap.column != i % kWindow) return false;
  }
  return true;
}

// Tiles by width of the grid and number of channels, not larger than either.
using Wide16 = Tile<1, 16, 16, 16, 4, 1>;
using Wide32 = Tile<1, 8, 16, 32, 2, 2>;
using Pair16 = Tile<2, 4, 8, 16, 4, 1>;
using Pair32 = Tile<2, 4, 8, 32, 2, 2>;
// Larger tiles, if weights have to be copied again for each tile.
using LargeWide32 = Tile<1, 16, 16, 32, 4, 2>;
using LargeFour32 = Tile<4, 8, 8, 32, 4, 2>;
using LargeStep32 = Tile<4, 4, 8, 32, 4, 2>;
// Small tiles, for windows with so few pixels that a large GPU has a multiprocessor per tile.
using SmallWide32 = Tile<1, 4, 16, 32, 4, 2>;
using SmallPair32 = Tile<2, 4, 8, 32, 4, 2>;
inline constexpr int kFewItems = 128;
template <class T>
inline constexpr bool kForWindows =
    std::is_same_v<T, SmallWide32> || std::is_same_v<T, SmallPair32>;

// Calls visit.template operator()<T>() for the tile of this convolution.
template <Math kMath, Channels kChannels, class Visit>
auto WithTile(const TapConvolution& c, const Visit& visit) {
  const bool wide = c.grids[0].columns > 8 && c.step == 1;
  if (c.out_channels <= 16) {
    return wide ? visit.template operator()<Wide16>() : visit.template operator()<Pair16>();
  }
  if constexpr (kMath == Math::kTf32 && kChannels == Channels::kFours) {
    constexpr int kFewWeights = 2 * kChannelsPerPart * kWindow * kWindow;
    const bool few = int64_t{MostTaps(c)} * c.channels <= kFewWeights;
    if (IsWindow(c) && !few) {
      if (wide && Items<SmallWide32>(c).count <= kFewItems) {
        return visit.template operator()<SmallWide32>();
      }
      if (!wide && Items<SmallPair32>(c).count <= kFewItems) {
        return visit.template operator()<SmallPair32>();
      }
    }
    if (wide && !few) return visit.template operator()<LargeWide32>();
    if (!wide && c.step == 1) return visit.template operator()<LargeFour32>();
    if (c.step == 2 && !few) return visit.template operator()<LargeStep32>();
  }
  return wide ? visit.template operator()<Wide32>() : visit.template operator()<Pair32>();
}

// One half of LaunchTapConvolution, by layout of the weights: each half is its own translation
// unit.
template <Weights kLayout>
void LaunchTaps(cudaStream_t stream, const TapConvolution& c, Math math, const TapArrays& arrays) {
  const auto launch = [&]<Math kMath, Channels kChannels>() {
    WithTile<kMath, kChannels>(c, [&]<class T>() {
      constexpr bool kMayBeWindow = kMath == Math::kTf32 && kChannels == Channels::kFours &&
                                    (T::kBlocksM >= kWindow || kForWindows<T>);
      if constexpr (kMayBeWindow) {
        if (IsWindow(c)) {
          Launch<T, kMath, kChannels, kLayout, Taps::kWindow>(stream, c, arrays);
          return;
        }
      }
      if constexpr (!kForWindows<T>) {
        Launch<T, kMath, kChannels, kLayout, Taps::kAny>(stream, c, arrays);
      }
    });
  };
  const bool fours = c.channels % 4 == 0 && c.out_channels % 4 == 0;
  if (math == Math::kFp32) {
    launch.template operator()<Math::kFp32, Channels::kOdd>();
  } else if (fours) {
    launch.template operator()<Math::kTf32, Channels::kFours>();
  } else {
    launch.template operator()<Math::kTf32, Channels::kOdd>();
  }
}

}  // namespace thimble::tap
