// One block makes a tile of result pixels by a tile of result channels, part by part of the source
// channels. The source pixels that the tile's taps reach and the weights of all taps lie in shared
// memory, so that each is read from global memory about once and not once for each tap. In TF32
// both are rounded on their way in, and warps multiply 16x8x8 blocks on tensor cores straight out
// of the shifted tile; in fp32 each lane multiplies for the same sums that it would hold then.
//
// Half of a block's threads copy and round, the others multiply: parts go through a ring of slots
// in shared memory from the ones to the others, so that neither waits for long.
#include <cuda_runtime.h>

#include <algorithm>
#include <climits>

#include "thimble/device/cuda/check.h"
#include "thimble/ops/conv2d/cuda/tap_convolution.h"
#include "thimble/ops/conv2d/cuda/tap_copy.cuh"
#include "thimble/ops/conv2d/cuda/tap_multiply.cuh"
#include "thimble/ops/conv2d/cuda/tap_tile.cuh"

namespace thimble {
namespace {

using namespace tap;  // NOLINT: the parts of this kernel

// 227 KB are the most of an H100's, 163 KB of an A100's block.
constexpr size_t kMaxSharedBytes = size_t{160} << 10;

template <class T, Math kMath, Channels kChannels, Weights kLayout, Taps kTaps>
__global__ void __launch_bounds__(2 * T::kThreads, T::kThreads > 128 ? 1 : 2)
    TapConvolutionKernel(const __grid_constant__ TapConvolution c, int slots, const float* source,
                         const float* weights, float* result) {
  extern __shared__ float shared[];
  if (threadIdx.x >= T::kThreads) {
    FillSlots<T, kMath, kChannels, kLayout>(c, slots, source, weights, shared);
  } else {
    DrainSlots<T, kMath, kChannels, kLayout, kTaps>(c, slots, shared, result);
  }
}

// Slots, of those that fit. Where an item has few parts, each keeps its slot, and its weights stay.
int SlotsFor(const TapConvolution& c, int fitting) {
  const int slots = std::clamp(fitting, 1, kMaxSlots);
  const int parts = (c.channels + kChannelsPerPart - 1) / kChannelsPerPart;
  return parts <= slots ? slots / parts * parts : slots;
}

template <class T, Math kMath, Channels kChannels, Weights kLayout, Taps kTaps>
void Launch(cudaStream_t stream, const TapConvolution& c, const float* source, const float* weights,
            float* result) {
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
    THIMBLE_CUDA(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, d.shared_bytes));
    return d;
  }();
  // As many blocks as run at once; how many there are, and how many slots, changes no bit of the
  // result.
  constexpr int kBlocks = T::kThreads > 128 ? 1 : 2;
  const int slot_bytes = static_cast<int>(SlotBytes<T>(c));
  // A kilobyte of each block is the system's.
  const int block_bytes = kBlocks == 1 ? device.shared_bytes : device.shared_bytes / kBlocks - 1024;
  const int table_bytes = static_cast<int>(TableBytes<T>(c));
  const int slots = SlotsFor(c, (block_bytes - table_bytes) / slot_bytes);
  const int blocks = std::min(items, kBlocks * device.multiprocessors);
  kernel<<<static_cast<unsigned>(blocks), 2 * T::kThreads,
           static_cast<size_t>(slots * slot_bytes + table_bytes), stream>>>(c, slots, source,
                                                                            weights, result);
  THIMBLE_CUDA_LAUNCHED();
}

// By width of the grid and by channels: no more than there are.
using Wide16 = Tile<1, 16, 16, 16, 4, 1>;
using Wide32 = Tile<1, 8, 16, 32, 2, 2>;
using Pair16 = Tile<2, 4, 8, 16, 4, 1>;
using Pair32 = Tile<2, 4, 8, 32, 2, 2>;
// For weights that have to be copied again for each tile: more pixels.
using LargeWide32 = Tile<1, 16, 16, 32, 4, 2>;
using LargeFour32 = Tile<4, 8, 8, 32, 4, 2>;
using LargeStep32 = Tile<4, 4, 8, 32, 4, 2>;

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
    if (wide && !few) return visit.template operator()<LargeWide32>();
    if (!wide && c.step == 1) return visit.template operator()<LargeFour32>();
    if (c.step == 2 && !few) return visit.template operator()<LargeStep32>();
  }
  return wide ? visit.template operator()<Wide32>() : visit.template operator()<Pair32>();
}

// Taps by row and column: an input gradient has them the other way round.
void SortTaps(TapGrid& grid) {
  std::sort(grid.taps, grid.taps + grid.num_taps, [](const Tap& a, const Tap& b) {
    return a.row != b.row ? a.row < b.row : a.column < b.column;
  });
}

// Whether sorted taps are a window, moved by one pixel for the next position.
bool IsWindow(const TapConvolution& c) {
  if (c.step != 1 || c.num_grids != 1 || c.grids[0].num_taps != kWindow * kWindow) return false;
  for (int i = 0; i < kWindow * kWindow; ++i) {
    const Tap& tap = c.grids[0].taps[i];
    if (tap.row != i / kWindow || tap.column != i % kWindow) return false;
  }
  return true;
}

}  // namespace

bool FitsTapConvolution(const TapConvolution& c) {
  const int64_t image_floats = static_cast<int64_t>(c.height) * c.width * c.channels;
  const auto fits = [&]<class T>() {
    return SlotBytes<T>(c) + TableBytes<T>(c) <= kMaxSharedBytes &&
           AreaOf<T>(c).pixels() < kMaxTilePixels && T::kImages * image_floats <= INT_MAX;
  };
  return WithTile<Math::kTf32, Channels::kFours>(c, fits) &&
         WithTile<Math::kFp32, Channels::kOdd>(c, fits);
}

void LaunchTapConvolution(cudaStream_t stream, const TapConvolution& convolution, Math math,
                          const float* source, const float* weights, float* result) {
  TapConvolution c = convolution;
  for (int grid = 0; grid < c.num_grids; ++grid) SortTaps(c.grids[grid]);
  const auto launch = [&]<class T, Math kMath, Channels kChannels, Taps kTaps>() {
    if (c.k_stride == 1) {
      Launch<T, kMath, kChannels, Weights::kSourceInner, kTaps>(stream, c, source, weights, result);
    } else {
      Launch<T, kMath, kChannels, Weights::kResultInner, kTaps>(stream, c, source, weights, result);
    }
  };
  const auto launch_with = [&]<Math kMath, Channels kChannels>() {
    WithTile<kMath, kChannels>(c, [&]<class T>() {
      if constexpr (kMath == Math::kTf32 && kChannels == Channels::kFours &&
                    T::kBlocksM >= kWindow) {
        if (IsWindow(c)) {
          return launch.template operator()<T, kMath, kChannels, Taps::kWindow>();
        }
      }
      launch.template operator()<T, kMath, kChannels, Taps::kAny>();
    });
  };
  const bool fours = c.channels % 4 == 0 && c.out_channels % 4 == 0;
  if (math == Math::kFp32) {
    launch_with.template operator()<Math::kFp32, Channels::kOdd>();
  } else if (fours) {
    launch_with.template operator()<Math::kTf32, Channels::kFours>();
  } else {
    launch_with.template operator()<Math::kTf32, Channels::kOdd>();
  }
}

}  // namespace thimble
