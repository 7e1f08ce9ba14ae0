// Copies packed weights (tensor/packed.h) into slots of shared memory, with zeros where they are
// not active. The functions serve tiles of all sizes and are not inlined, which takes less time to
// compile.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "thimble/device/cuda/packed.cuh"
#include "thimble/device/cuda/tensor_core.cuh"
#include "thimble/ops/conv2d/cuda/factor_groups.cuh"
#include "thimble/ops/conv2d/cuda/tap_fill.cuh"
#include "thimble/ops/conv2d/cuda/tap_tile.cuh"

namespace thimble::tap {

// The packed weights of a part and their WeightTile, as plain numbers.
struct PackedPart {
  ConstNumbers pool;
  PackedPlace packed;
  // As in TapConvolution; inner: along which weights are neighbours.
  int row_stride, tap_stride;
  // Rows and inner channels from the part's first on; at most those of the tile count.
  int first_weight, rows_left, inner_left;
  int num_taps;
  // The tile; groups are a power of two.
  int groups, groups_in_row;
  int row_words, tap_words;  // between neighbours
  int copier, copiers;
};

template <class T, Weights kLayout>
__device__ PackedPart PackedPartOf(const PartPlace<T>& place, const TapArrays& arrays) {
  using W = WeightTile<T, kLayout>;
  static_assert((W::kGroups & (W::kGroups - 1)) == 0 && T::kCopiers % 32 == 0);
  const TapConvolution& c = place.c;
  const int result = place.part.item.result;
  const int channel = place.part.channel;
  return {.pool = arrays.weights,
          .packed = arrays.packed,
          .row_stride = W::kBySource ? c.n_stride : c.k_stride,
          .tap_stride = c.t_stride,
          .first_weight = result * c.n_stride + channel * c.k_stride,
          .rows_left = W::kBySource ? c.out_channels - result : c.channels - channel,
          .inner_left = W::kBySource ? c.channels - channel : c.out_channels - result,
          .num_taps = place.grid().num_taps,
          .groups = W::kGroups,
          .groups_in_row = W::kGroupsInRow,
          .row_words = W::kRowPitch,
          .tap_words = W::kWords,
          .copier = Copier<T>(),
          .copiers = T::kCopiers};
}

// The kernel's taps of a grid, distributed over the lanes of a warp: each lane has two.
struct LaneTaps {
  int low, high;

  __device__ explicit LaneTaps(const TapGrid& grid) {
    static_assert(kMaxTaps <= 64);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    low = lane < grid.num_taps ? grid.taps[lane].weight : 0;
    high = lane + 32 < grid.num_taps ? grid.taps[lane + 32].weight : 0;
  }
  // Called by all lanes of a warp.
  __device__ int operator[](int tap) const {
    const int from_low = __shfl_sync(0xFFFFFFFFU, low, tap % 32);
    const int from_high = __shfl_sync(0xFFFFFFFFU, high, tap % 32);
    return tap < 32 ? from_low : from_high;
  }
};

// 16 bytes of factors.
template <class Number>
struct alignas(kGroupBytes) FactorGroup {
  Number numbers[kGroupBytes / sizeof(Number)];
};

template <Math kMath, class Stored>
__device__ Factor<kMath> LoadFactor(InNumbers<Stored> from) {
  using Number = Factor<kMath>;
  if constexpr (kMath == Math::kTf32) {
    return RoundToTf32(LoadNumber(from));
  } else if constexpr (std::is_same_v<Stored, Number>) {
    return *from;
  } else {
    Number number;
    StoreNumber(LoadNumber(from), &number);
    return number;
  }
}

// A group of which only the first `valid` elements exist; they may be in two words of the pattern.
template <Math kMath>
__device__ FactorGroup<Factor<kMath>> LoadPackedSingly(const PackedPart& part, int element,
                                                       int valid) {
  FactorGroup<Factor<kMath>> group{};
#pragma unroll
  for (int i = 0; i < kGroupBytes / static_cast<int>(sizeof(Factor<kMath>)); ++i) {
    if (i >= valid) break;
    const PackedGroup found = FindGroup<1>(part.packed, element + i);
    if (found.active == 0) continue;
    group.numbers[i] =
        LoadFactor<kMath, AnyNumber>(As<AnyNumber>(part.pool) + int64_t{found.place});
  }
  return group;
}

// A group within a word of the pattern.
template <Math kMath, class Stored>
__device__ FactorGroup<Factor<kMath>> LoadPackedGroup(InNumbers<Stored> pool,
                                                      const PackedGroup& found) {
  FactorGroup<Factor<kMath>> group{};
  auto from = pool + int64_t{found.place};
#pragma unroll
  for (int i = 0; i < kGroupBytes / static_cast<int>(sizeof(Factor<kMath>)); ++i) {
    const bool active = (found.active >> i & 1) != 0;
    if (active) group.numbers[i] = LoadFactor<kMath, Stored>(from);
    from = from + static_cast<int64_t>(active);
  }
  return group;
}

// The groups of one thread. A batch of them is searched for in the pattern, without branches, then
// loaded and stored: otherwise each would take as long as two accesses to global memory.
template <Math kMath, class Stored, bool kWhole>
__device__ void CopyPackedGroups(const PackedPart& part, const LaneTaps& taps, float* to) {
  using Group = FactorGroup<Factor<kMath>>;
  constexpr int kNumbers = kGroupBytes / static_cast<int>(sizeof(Factor<kMath>));
  constexpr int kBatch = kWhole ? 4 : 1;
  const int count = part.groups * part.num_taps;
  const int group_bits = 31 - __clz(part.groups);
  const int row_bits = 31 - __clz(part.groups_in_row);
  // The same number of rounds for all lanes of a warp, because of the taps.
  for (int first = part.copier; first - part.copier % 32 < count; first += kBatch * part.copiers) {
    int places[kBatch];
    int elements[kBatch];
    int valid[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int index = first + i * part.copiers;
      const int group = index & (part.groups - 1);
      const int tap = min(index >> group_bits, part.num_taps - 1);
      const int group_row = group >> row_bits;
      const int row = part.groups_in_row == 4 ? RowInOtherBanks(group_row) : group_row;
      const int inner = group & (part.groups_in_row - 1);
      places[i] = row * part.row_words + inner * kGroupWords + tap * part.tap_words;
      elements[i] = part.first_weight + row * part.row_stride + inner * kNumbers +
                    taps[tap] * part.tap_stride;
      const bool is_there = index < count && row < part.rows_left;
      valid[i] = is_there ? part.inner_left - inner * kNumbers : 0;
    }
    Group groups[kBatch];
    if constexpr (kWhole) {
      PackedGroup found[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        found[i] = FindGroup<kNumbers>(part.packed, valid[i] > 0 ? elements[i] : 0);
        if (valid[i] <= 0) found[i].active = 0;
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        groups[i] = LoadPackedGroup<kMath, Stored>(As<Stored>(part.pool), found[i]);
      }
    } else {
      groups[0] = LoadPackedSingly<kMath>(part, elements[0], valid[0]);
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      if (first + i * part.copiers < count) *reinterpret_cast<Group*>(to + places[i]) = groups[i];
    }
  }
}

// Copies the weights of all taps of a grid for one tile of result channels and one part. Called by
// all threads that copy.
template <Math kMath>
__noinline__ __device__ void CopyPackedWeights(PackedPart part, LaneTaps taps, bool whole,
                                               float* to) {
  // Other types than the factors': numbers of 16 bits are rounded from floats alone.
  using Other = std::conditional_t<IsShort(kMath), float, AnyNumber>;
  if (part.num_taps == 0) return;
  if (!whole) {
    CopyPackedGroups<kMath, AnyNumber, false>(part, taps, to);
  } else if (part.pool.type == DTypeOf<Factor<kMath>>()) {
    CopyPackedGroups<kMath, Factor<kMath>, true>(part, taps, to);
  } else {
    CopyPackedGroups<kMath, Other, true>(part, taps, to);
  }
}
template <class T, Weights kLayout>
__device__ void CopyPackedWeights(const PartPlace<T>& place, const TapArrays& arrays, float* to) {
  constexpr int kNumbers = kGroupBytes / static_cast<int>(sizeof(typename T::Number));
  const int inner = kLayout == Weights::kSourceInner ? place.c.channels : place.c.out_channels;
  CopyPackedWeights<T::kMath>(PackedPartOf<T, kLayout>(place, arrays), LaneTaps(place.grid()),
                              inner % kNumbers == 0, to);
}

}  // namespace thimble::tap
