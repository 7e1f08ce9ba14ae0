// The kernel of a TapConvolution and its launch.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/math.h"
#include "thimble/ops/conv2d/cuda/tap_convolution.h"
#include "thimble/ops/conv2d/cuda/tap_copy.cuh"
#include "thimble/ops/conv2d/cuda/tap_copy_short.cuh"
#include "thimble/ops/conv2d/cuda/tap_multiply.cuh"
#include "thimble/ops/conv2d/cuda/tap_store.cuh"
#include "thimble/ops/conv2d/cuda/tap_tile.cuh"

namespace thimble::tap {

// Blocks per multiprocessor: as many as the registers allow.
template <class T, Taps kTaps, bool kPacked>
inline constexpr int kMostBlocks = T::kThreads > 128                                ? 1
                                   : kTaps == Taps::kWindow || T::kShort || kPacked ? 2
                                                                                    : 3;

// kPacked: the weights are packed. One kernel for both, with a branch, was slower with dense ones.
template <class T, Channels kChannels, Weights kLayout, Taps kTaps, bool kPacked>
__global__ void __launch_bounds__(T::kThreads + T::kCopiers, kMostBlocks<T, kTaps, kPacked>)
    TapConvolutionKernel(const __grid_constant__ TapConvolution c, int slots,
                         const __grid_constant__ TapArrays arrays) {
  using Parts = std::conditional_t<T::kShort, ShortParts<T, kLayout, kPacked>,
                                   FloatParts<T, kChannels, kLayout, kTaps, kPacked>>;
  using Results =
      std::conditional_t<T::kShort, ShortResults<T, kTaps>, FloatResults<T, kChannels, kTaps>>;
  extern __shared__ float shared[];
  __shared__ Handovers handovers;
  handovers.Make<T>();
  if (threadIdx.x >= T::kThreads) {
    FillSlots<T>(c, slots, Parts(c, arrays), shared, handovers);
  } else {
    WaitForKernelsBefore(NextKernels::kLater);
    DrainSlots<T, kLayout, kTaps>(c, slots, shared, Results(c, arrays), handovers);
  }
}

// The number of slots, at most `fitting`. If an item has few parts, each keeps its slot, and its
// weights stay there.
template <class T>
int SlotsFor(const TapConvolution& c, int fitting) {
  const int slots = std::clamp(fitting, 1, kMaxSlots);
  const int parts = std::max(1, (c.channels + T::kPartChannels - 1) / T::kPartChannels);
  return parts <= slots ? slots / parts * parts : slots;
}

template <class T, Channels kChannels, Weights kLayout, Taps kTaps, bool kPacked>
void Launch(cudaStream_t stream, const TapConvolution& c, const TapArrays& arrays) {
  const auto kernel = TapConvolutionKernel<T, kChannels, kLayout, kTaps, kPacked>;
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
  int at_once = kMostBlocks<T, kTaps, kPacked>;
  while (at_once > 1 && slots_with(at_once) < 2) --at_once;
  const int slots = SlotsFor<T>(c, slots_with(at_once));
  const int blocks = std::min(items, at_once * device.multiprocessors);
  kernel<<<static_cast<unsigned>(blocks), T::kThreads + T::kCopiers,
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
template <Math kMath>
struct Tiles {
  using Wide16 = Tile<kMath, 1, 16, 16, 16, 4, 1>;
  using Wide32 = Tile<kMath, 1, 8, 16, 32, 2, 2>;
  using Pair16 = Tile<kMath, 2, 4, 8, 16, 4, 1>;
  using Pair32 = Tile<kMath, 2, 4, 8, 32, 2, 2>;
  // Larger tiles, if weights have to be copied again for each tile.
  static constexpr int kCopiers = IsShort(kMath) ? 128 : 256;
  using LargeWide32 = Tile<kMath, 1, 16, 16, 32, 4, 2, kCopiers>;
  using LargeWide64 = Tile<kMath, 1, 16, 16, 64, 4, 2, kCopiers>;
  using LargeFour32 = Tile<kMath, 4, 8, 8, 32, 4, 2, kCopiers>;
  using LargeFour64 = Tile<kMath, 4, 8, 8, 64, 4, 2, kCopiers>;
  using LargeStep32 = Tile<kMath, 4, 4, 8, 32, 4, 2, kCopiers>;
  // Small tiles, for windows with so few pixels that a large GPU has a multiprocessor per tile.
  using SmallWide32 = Tile<kMath, 1, 4, 16, 32, 4, 2, kCopiers>;
  using SmallPair32 = Tile<kMath, 2, 4, 8, 32, 4, 2, kCopiers>;
};
inline constexpr int kFewItems = 128;
template <class T, class Of = Tiles<T::kMath>>
inline constexpr bool kForWindows =
    std::is_same_v<T, typename Of::SmallWide32> || std::is_same_v<T, typename Of::SmallPair32> ||
    std::is_same_v<T, typename Of::LargeWide64> || std::is_same_v<T, typename Of::LargeFour64>;

// Whether the weights of all parts stay in the slots.
template <Math kMath>
bool HasFewWeights(const TapConvolution& c) {
  constexpr int kFewWeights = 2 * kWordsPerPart * kWindow * kWindow;
  const int words = c.channels / Tiles<kMath>::Wide32::kNumbersPerWord;
  return int64_t{MostTaps(c)} * words <= kFewWeights;
}

// Calls visit.template operator()<T>() for the tile of this convolution.
template <Math kMath, Channels kChannels, class Visit>
auto WithTile(const TapConvolution& c, const Visit& visit) {
  using Of = Tiles<kMath>;
  const bool wide = c.grids[0].columns > 8 && c.step == 1;
  if (c.out_channels <= 16) {
    return wide ? visit.template operator()<typename Of::Wide16>()
                : visit.template operator()<typename Of::Pair16>();
  }
  if constexpr (kMath == Math::kTf32 && kChannels == Channels::kFours) {
    const bool few = HasFewWeights<kMath>(c);
    if (IsWindow(c) && !few) {
      if (wide && Items<typename Of::SmallWide32>(c).count <= kFewItems) {
        return visit.template operator()<typename Of::SmallWide32>();
      }
      if (!wide && Items<typename Of::SmallPair32>(c).count <= kFewItems) {
        return visit.template operator()<typename Of::SmallPair32>();
      }
    }
    if (wide && !few) return visit.template operator()<typename Of::LargeWide32>();
    if (!wide && c.step == 1) return visit.template operator()<typename Of::LargeFour32>();
    if (c.step == 2 && !few) return visit.template operator()<typename Of::LargeStep32>();
  }
  return wide ? visit.template operator()<typename Of::Wide32>()
              : visit.template operator()<typename Of::Pair32>();
}

// Whether tiles of 64 result channels take less time than the same of 32: they do twice the work
// with fewer loads, but leave more of the GPU idle in the last round and beyond the last channel.
template <class Large, class Small>
bool PreferLarge(const TapConvolution& c) {
  constexpr int kMultiprocessors = 132;  // of a large GPU
  const auto rounds = []<class T>(const Items<T>& items) {
    return int64_t{(items.count + kMultiprocessors - 1) / kMultiprocessors};
  };
  return c.out_channels > 32 && 8 * rounds(Items<Large>(c)) <= 5 * rounds(Items<Small>(c));
}

// The same for factors of 16 bits.
template <Math kMath, class Visit>
auto WithShortTile(const TapConvolution& c, const Visit& visit) {
  using Of = Tiles<kMath>;
  const bool wide = c.grids[0].columns > 8 && c.step == 1;
  if (c.out_channels <= 16) {
    return wide ? visit.template operator()<typename Of::Wide16>()
                : visit.template operator()<typename Of::Pair16>();
  }
  const bool window = IsWindow(c);
  if (window && wide && Items<typename Of::SmallWide32>(c).count <= kFewItems) {
    return visit.template operator()<typename Of::SmallWide32>();
  }
  if (window && !wide && Items<typename Of::SmallPair32>(c).count <= kFewItems) {
    return visit.template operator()<typename Of::SmallPair32>();
  }
  const bool few = HasFewWeights<kMath>(c);
  if (wide && !few) {
    return window && PreferLarge<typename Of::LargeWide64, typename Of::LargeWide32>(c)
               ? visit.template operator()<typename Of::LargeWide64>()
               : visit.template operator()<typename Of::LargeWide32>();
  }
  if (!wide && c.step == 1) {
    return window && !few && PreferLarge<typename Of::LargeFour64, typename Of::LargeFour32>(c)
               ? visit.template operator()<typename Of::LargeFour64>()
               : visit.template operator()<typename Of::LargeFour32>();
  }
  if (c.step == 2 && !few) return visit.template operator()<typename Of::LargeStep32>();
  return wide ? visit.template operator()<typename Of::Wide32>()
              : visit.template operator()<typename Of::Pair32>();
}

// The same tile with as many threads that copy as multiply: packed weights pass through registers.
// Tiles of 64 channels need the registers for their sums.
template <class T>
struct WithMoreCopiers {
  using Type = T;
};
template <Math kMath, int kImages, int kRows, int kColumns, int kChannels, int kWarpsM, int kWarpsN,
          int kCopiers>
struct WithMoreCopiers<
    Tile<kMath, kImages, kRows, kColumns, kChannels, kWarpsM, kWarpsN, kCopiers>> {
  using Type = Tile<kMath, kImages, kRows, kColumns, kChannels, kWarpsM, kWarpsN>;
};

// Launches the kernel of a tile for this kind of taps.
template <class T, Channels kChannels, Weights kLayout, bool kPacked>
void LaunchTile(cudaStream_t stream, const TapConvolution& c, const TapArrays& arrays) {
  using Copying =
      std::conditional_t<(kPacked && T::kChannels < 64), typename WithMoreCopiers<T>::Type, T>;
  constexpr bool kWhole = T::kShort || (T::kMath == Math::kTf32 && kChannels == Channels::kFours);
  if constexpr (kWhole && (T::kBlocksM >= kWindow || kForWindows<T>)) {
    if (IsWindow(c)) {
      Launch<Copying, kChannels, kLayout, Taps::kWindow, kPacked>(stream, c, arrays);
      return;
    }
  }
  if constexpr (!kForWindows<T>) {
    Launch<Copying, kChannels, kLayout, Taps::kAny, kPacked>(stream, c, arrays);
  }
}

// LaunchTapConvolution by layout of the weights, for floats and for factors of 16 bits: each is its
// own translation unit.
template <Weights kLayout, bool kPacked>
void LaunchTaps(cudaStream_t stream, const TapConvolution& c, Math math, const TapArrays& arrays) {
  const auto launch = [&]<Math kMath, Channels kChannels>() {
    WithTile<kMath, kChannels>(
        c, [&]<class T>() { LaunchTile<T, kChannels, kLayout, kPacked>(stream, c, arrays); });
  };
  const bool fours = c.channels % 4 == 0 && c.out_channels % 4 == 0;
  const bool floats = arrays.source.is_float() && arrays.weights.is_float() &&
                      arrays.other.is_float() && arrays.result.is_float();
  if (math == Math::kFp32) {
    launch.template operator()<Math::kFp32, Channels::kOdd>();
  } else if (!floats || (kPacked && !fours)) {  // the latter are few: no kernels of their own
    launch.template operator()<Math::kTf32, Channels::kAny>();
  } else if (fours) {
    launch.template operator()<Math::kTf32, Channels::kFours>();
  } else if constexpr (!kPacked) {
    launch.template operator()<Math::kTf32, Channels::kOdd>();
  }
}

template <Weights kLayout, Math kMath, bool kPacked>
void LaunchShortTaps(cudaStream_t stream, const TapConvolution& c, const TapArrays& arrays) {
  WithShortTile<kMath>(
      c, [&]<class T>() { LaunchTile<T, Channels::kFours, kLayout, kPacked>(stream, c, arrays); });
}

}  // namespace thimble::tap
