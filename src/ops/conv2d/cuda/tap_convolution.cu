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
constexpr int kMaxSlots = 4;

// How weights lie in memory: those of neighbouring source or result channels side by side. They lie
// likewise in shared memory.
enum class Weights { kSourceInner, kResultInner };

// Which taps there are: any, or a window of three by three with a step of one, where a line of
// source pixels serves the result lines of three rows of taps from registers.
enum class Taps { kAny, kWindow };
constexpr int kWindow = 3;

// A pixel of a tile: which image, position in it.
struct TilePixel {
  int image, row, column;
};

template <int kImages_, int kRows_, int kColumns_, int kChannels_, int kWarpsM_, int kWarpsN_>
struct Tile {
  static constexpr int kImages = kImages_;
  static constexpr int kRows = kRows_;  // positions of each image
  static constexpr int kColumns = kColumns_;
  static constexpr int kPixels = kImages * kRows * kColumns;
  static constexpr int kChannels = kChannels_;  // of the result
  static constexpr int kWarpsN = kWarpsN_;
  static constexpr int kThreads = 32 * kWarpsM_ * kWarpsN_;  // that multiply; as many copy
  static constexpr int kWarpPixels = kPixels / kWarpsM_;
  static constexpr int kWarpChannels = kChannels / kWarpsN_;
  static constexpr int kBlocksM = kWarpPixels / 16;
  static constexpr int kBlocksN = kWarpChannels / 8;
  static_assert(kBlocksN % 2 == 0 && kWarpPixels % 16 == 0);
  // A block of 16 pixels is a line of one image or the same line of two; the next block is the next
  // line, and a warp's lines are neighbours.
  static constexpr int kImagesAbreast = 16 / kColumns;
  static_assert(16 % kColumns == 0 && kColumns % 8 == 0 && kImages % kImagesAbreast == 0);
  static_assert(kRows % kBlocksM == 0);

  __device__ static TilePixel PixelAt(int index) {
    const int line = index / 16;
    return {line / kRows * kImagesAbreast + index % 16 / kColumns, line % kRows, index % kColumns};
  }
};

// Of those that multiply, or of those that copy.
template <class T>
__device__ int ThreadOfRole() {
  return static_cast<int>(threadIdx.x % T::kThreads);
}
template <class T>
__device__ int WarpOfRole() {
  return ThreadOfRole<T>() / 32;
}

// A barrier for the threads of one role.
constexpr int kRoleBarrier = 1 + 2 * kMaxSlots;

template <class T>
__device__ void SyncCopiers() {
  asm volatile("bar.sync %0, %1;" ::"n"(kRoleBarrier), "n"(T::kThreads) : "memory");
}

// Barriers of a slot: it is full or empty. The ones arrive, the others wait for them.
enum class Slot { kFull, kEmpty };

template <class T>
__device__ void Arrive(Slot state, int slot) {
  const int barrier = 1 + slot + (state == Slot::kFull ? 0 : kMaxSlots);  // 0 is __syncthreads
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "n"(2 * T::kThreads) : "memory");
}
template <class T>
__device__ void WaitFor(Slot state, int slot) {
  const int barrier = 1 + slot + (state == Slot::kFull ? 0 : kMaxSlots);
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(2 * T::kThreads) : "memory");
}

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
};

// Shared memory of a slot: source pixels and weights of a part.
template <class T>
__host__ __device__ int SlotFloats(const TapConvolution& c) {
  constexpr int kWeights = std::max(WeightTile<T, Weights::kSourceInner>::kFloats,
                                    WeightTile<T, Weights::kResultInner>::kFloats);
  return T::kImages * AreaOf<T>(c).pixels() * kPitch + MostTaps(c) * kWeights;
}

template <class T>
size_t SlotBytes(const TapConvolution& c) {
  return static_cast<size_t>(SlotFloats<T>(c)) * sizeof(float);
}
// And of the table that says where an item's pixels lie.
template <class T>
size_t TableBytes(const TapConvolution& c) {
  return static_cast<size_t>(T::kImages * AreaOf<T>(c).pixels()) * sizeof(int);
}

// With kPitch, rows of 16 floats lie in different banks if four others are between them: so that
// threads do not wait for each other's banks, neighbours take such rows.
__device__ inline int RowInOtherBanks(int row) {
  return row / 8 * 8 + row % 2 * 4 + row % 8 / 2;
}

// Four floats, of which the first `valid` exist; the others are zero.
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

// Copies the weights of all taps of a grid for one tile of result channels and one part, batch by
// batch of taps. Each thread has a group of its own and some of the taps.
template <class T, Math kMath, Channels kChannels, Weights kLayout>
struct WeightCopy {
  using W = WeightTile<T, kLayout>;
  static constexpr int kTapsAtOnce = T::kThreads / W::kGroups;
  static_assert(T::kThreads % W::kGroups == 0);
  static constexpr int kGroupsInRow = W::kRowFloats / 4;
  static constexpr int kBatch = 5;  // all taps of a window in one

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

template <class T>
struct Sums {
  float values[T::kBlocksM][T::kBlocksN][4] = {};
};

// Weights of one tap and eight channels from `k` on, `weights` those of this warp's first result
// channel.
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

// Adds the products of one tap and eight channels from `k` on. `pixels` are addresses as LoadA
// wants them.
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

// What a warp multiplies for one column of a window and eight channels: all lines that its rows of
// taps reach, and their weights.
template <class T, Weights kLayout>
struct WindowColumn {
  TensorCoreA lines[T::kBlocksM + kWindow - 1];
  TensorCoreB weights[kWindow][T::kBlocksN];

  // `pixels` is the address of the first line, `line_bytes` the way to the next.
  __device__ void Load(uint32_t pixels, uint32_t line_bytes, const float* tap_weights, int column,
                       int k) {
#pragma unroll
    for (int i = 0; i < T::kBlocksM + kWindow - 1; ++i) {
      LoadA(pixels + i * line_bytes +
                static_cast<uint32_t>((column * kPitch + k) * sizeof(float)),
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
  unsigned images, down, across, results;
  int count;

  __host__ __device__ explicit Items(const TapConvolution& c)
      : images((c.batch + T::kImages - 1) / T::kImages),
        // The grid of residue 0 is the largest.
        down((c.grids[0].rows + T::kRows - 1) / T::kRows),
        across((c.grids[0].columns + T::kColumns - 1) / T::kColumns),
        results((c.out_channels + T::kChannels - 1) / T::kChannels),
        count(static_cast<int>(images * down * across * results * c.num_grids)) {}

  // Neighbouring items read the same source.
  __device__ Item At(const TapConvolution& c, int index) const {
    unsigned rest = static_cast<unsigned>(index);
    const auto take = [&](unsigned count) {
      const unsigned taken = rest % count;
      rest /= count;
      return static_cast<int>(taken);
    };
    Item item;
    item.grid = take(static_cast<unsigned>(c.num_grids));
    item.result = take(results) * T::kChannels;
    item.column = take(across) * T::kColumns;
    item.row = take(down) * T::kRows;
    item.image = static_cast<int>(rest) * T::kImages;
    return item;
  }
};

// Stores this lane's sums: eight neighbouring pixels of a block's halves, its lines downwards.
template <class T, Channels kChannels>
__device__ void StoreResult(const TapConvolution& c, const Item& item, const Sums<T>& sums,
                            float* result) {
  const TapGrid& grid = c.grids[item.grid];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_pixel = WarpOfRole<T>() / T::kWarpsN * T::kWarpPixels;
  const int channel =
      item.result + WarpOfRole<T>() % T::kWarpsN * T::kWarpChannels + lane % 4 * 2;
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
    float* out = result + channel +
                 (out_row * c.out_width + grid.out_column + column * c.out_step) * c.out_channels;
#pragma unroll
    for (int m = 0; m < T::kBlocksM; ++m, out += line_floats) {
      if (row + m >= grid.rows) break;
#pragma unroll
      for (int n = 0; n < T::kBlocksN; ++n) {
        const float* pair = &sums.values[m][n][2 * half];
        const int valid = c.out_channels - channel - n * 8;
        if constexpr (kChannels == Channels::kFours) {
          if (valid > 0) *reinterpret_cast<float2*>(out + n * 8) = make_float2(pair[0], pair[1]);
        } else {
          if (valid > 0) out[n * 8] = pair[0];
          if (valid > 1) out[n * 8 + 1] = pair[1];
        }
      }
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

// What is multiplied together: a part of the source channels of an item. A block's items lie
// gridDim.x apart.
template <class T>
struct Part {
  int index;
  Item item;
  int channel = 0;  // the part's first
  int slot = 0;

  __device__ Part(const TapConvolution& c, const Items<T>& items)
      : index(static_cast<int>(blockIdx.x)), item(items.At(c, index)) {}

  __device__ bool Last(const TapConvolution& c) const {
    return channel + kChannelsPerPart >= c.channels || c.grids[item.grid].num_taps == 0;
  }
  // The same number for parts with the same weights.
  __device__ int Weights(const TapConvolution& c) const {
    const int parts = (c.channels + kChannelsPerPart - 1) / kChannelsPerPart;
    return (item.result / T::kChannels * parts + channel / kChannelsPerPart) * kMaxResidues +
           item.grid;
  }
  // To the next one. Says whether there is one.
  __device__ bool Advance(const TapConvolution& c, const Items<T>& items, int slots) {
    slot = slot + 1 < slots ? slot + 1 : 0;
    if (!Last(c)) {
      channel += kChannelsPerPart;
      return true;
    }
    channel = 0;
    index += static_cast<int>(gridDim.x);
    if (index >= items.count) return false;
    item = items.At(c, index);
    return true;
  }
};

// Which weights lie in each slot. Slots are used in turn: the last entry is the oldest.
class SlotWeights {
 public:
  // Says whether a part's weights are not in the slot that it takes, and notes that they are now.
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

// Copies the source pixels of an item, batch by batch. Where they lie is worked out once for all
// parts, in a table in shared memory.
template <class T, Math kMath, Channels kChannels>
struct SourceCopy {
  static constexpr unsigned kOutside = ~0U;
  static constexpr int kLanes = kChannelsPerPart / 4;  // threads that share a pixel
  static constexpr int kPixelsAtOnce = T::kThreads / kLanes;

  static constexpr int kBatch = 7;                     // all of a window's tile in one

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
    SyncCopiers<T>();  // nobody reads the table any more
    for (unsigned i = threadIdx.x % T::kThreads; i < T::kImages * pixels; i += T::kThreads) {
      const int image = static_cast<int>(i / pixels);
      const unsigned pixel = i % pixels;
      const int row = grid.first_row + item.row * scale +
                      static_cast<int>(pixel / columns) * c.load_step;
      const int column = grid.first_column + item.column * scale +
                         static_cast<int>(pixel % columns) * c.load_step;
      // A negative number is a large one here.
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

// Fills slots with the block's parts. The first batches of both factors, all there is of a window,
// are on their way before the slot has to be empty.
template <class T, Math kMath, Channels kChannels, Weights kLayout>
__device__ void FillSlots(const TapConvolution& c, int slots, const float* source,
                          const float* weights, float* shared) {
  const Items<T> items(c);
  const TileArea area = AreaOf<T>(c);
  const int pixels = T::kImages * area.pixels();
  const int slot_floats = SlotFloats<T>(c);
  const int64_t image_floats = static_cast<int64_t>(c.height) * c.width * c.channels;
  unsigned* offsets = reinterpret_cast<unsigned*>(shared + slots * slot_floats);
  SlotWeights slot_weights;
  SourceCopy<T, kMath, kChannels> source_copy;
  WeightCopy<T, kMath, kChannels, kLayout> weight_copy;
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
    if (count >= slots) WaitFor<T>(Slot::kEmpty, part.slot);
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
    Arrive<T>(Slot::kFull, part.slot);
  }
  // Nobody arrives at a barrier where nobody waits.
  for (int i = max(0, count - slots); i < count; ++i) WaitFor<T>(Slot::kEmpty, i % slots);
}

// Multiplies what comes in slots and stores the results.
template <class T, Math kMath, Channels kChannels, Weights kLayout, Taps kTaps>
__device__ void DrainSlots(const TapConvolution& c, int slots, const float* shared, float* result) {
  const Items<T> items(c);
  const TileArea area = AreaOf<T>(c);
  const int slot_floats = SlotFloats<T>(c);
  const int tile_floats = T::kImages * area.pixels() * kPitch;
  Sums<T> sums;
  Part<T> part(c, items);
  for (bool more = true; more; more = part.Advance(c, items, slots)) {
    const float* tile = shared + part.slot * slot_floats;
    WaitFor<T>(Slot::kFull, part.slot);
    // Whole blocks of eight; what there is not of them is zero.
    const int channels = min(kChannelsPerPart, c.channels - part.channel);
    MultiplyPart<T, kMath, kLayout, kTaps>(c.grids[part.item.grid], area, c.step, channels, tile,
                                           tile + tile_floats, sums);
    Arrive<T>(Slot::kEmpty, part.slot);
    if (!part.Last(c)) continue;
    StoreResult<T, kChannels>(c, part.item, sums, result);
    sums = {};
  }
}

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
    THIMBLE_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      d.shared_bytes));
    return d;
  }();
  // As many blocks as run at once; how many there are, and how many slots, changes no bit of the
  // result.
  constexpr int kBlocks = T::kThreads > 128 ? 1 : 2;
  const int slot_bytes = static_cast<int>(SlotBytes<T>(c));
  // A kilobyte of each block is the system's.
  const int block_bytes = kBlocks == 1 ? device.shared_bytes : device.shared_bytes / kBlocks - 1024;
  const int table_bytes = static_cast<int>(TableBytes<T>(c));
  const int slots = std::clamp((block_bytes - table_bytes) / slot_bytes, 1, kMaxSlots);
  const int blocks = std::min(items, kBlocks * device.multiprocessors);
  kernel<<<static_cast<unsigned>(blocks), 2 * T::kThreads,
           static_cast<size_t>(slots * slot_bytes + table_bytes), stream>>>(c, slots, source, weights, result);
  THIMBLE_CUDA_LAUNCHED();
}

// By width of the grid and by channels: no more than there are.
using Wide16 = Tile<1, 16, 16, 16, 4, 1>;
using Wide32 = Tile<1, 16, 16, 32, 4, 2>;
using Pair16 = Tile<2, 4, 8, 16, 4, 1>;
using Pair32 = Tile<2, 4, 8, 32, 2, 2>;
using Four32 = Tile<4, 8, 8, 32, 4, 2>;

// Calls visit.template operator()<T>() for the tile of this convolution.
template <class Visit>
auto WithTile(const TapConvolution& c, const Visit& visit) {
  const bool wide = c.grids[0].columns > 8 && c.step == 1;
  if (c.out_channels <= 16) {
    return wide ? visit.template operator()<Wide16>() : visit.template operator()<Pair16>();
  }
  if (wide) return visit.template operator()<Wide32>();
  if (c.step == 1) return visit.template operator()<Four32>();
  return visit.template operator()<Pair32>();
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

bool FitsTapConvolution(const TapConvolution& convolution) {
  return WithTile(convolution, [&]<class T>() {
    const int64_t image_floats =
        static_cast<int64_t>(convolution.height) * convolution.width * convolution.channels;
    return SlotBytes<T>(convolution) + TableBytes<T>(convolution) <= kMaxSharedBytes &&
           AreaOf<T>(convolution).pixels() < kMaxTilePixels && T::kImages * image_floats <= INT_MAX;
  });
}

void LaunchTapConvolution(cudaStream_t stream, const TapConvolution& convolution, Math math,
                          const float* source, const float* weights, float* result) {
  TapConvolution c = convolution;
  for (int grid = 0; grid < c.num_grids; ++grid) SortTaps(c.grids[grid]);
  const bool fours = c.channels % 4 == 0 && c.out_channels % 4 == 0;
  WithTile(c, [&]<class T>() {
    const auto launch = [&]<Math kMath, Channels kChannels, Taps kTaps>() {
      if (c.k_stride == 1) {
        Launch<T, kMath, kChannels, Weights::kSourceInner, kTaps>(stream, c, source, weights,
                                                                  result);
      } else {
        Launch<T, kMath, kChannels, Weights::kResultInner, kTaps>(stream, c, source, weights,
                                                                  result);
      }
    };
    if (math == Math::kFp32) {
      launch.template operator()<Math::kFp32, Channels::kOdd, Taps::kAny>();
    } else if (!fours) {
      launch.template operator()<Math::kTf32, Channels::kOdd, Taps::kAny>();
    } else if (T::kBlocksM >= kWindow && IsWindow(c)) {
      constexpr Taps kTaps = T::kBlocksM >= kWindow ? Taps::kWindow : Taps::kAny;
      launch.template operator()<Math::kTf32, Channels::kFours, kTaps>();
    } else {
      launch.template operator()<Math::kTf32, Channels::kFours, Taps::kAny>();
    }
  });
}

}  // namespace thimble
