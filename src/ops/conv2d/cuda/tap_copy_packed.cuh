// Copies packed weights (tensor/packed.h) into slots of shared memory, with zeros where they are
// not active. Each lane of a warp searches the pattern for a run of neighbouring weights; then the
// lanes write these runs, a group of 16 bytes each.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "thimble/device/cuda/packed.cuh"
#include "thimble/device/cuda/tensor_core.cuh"
#include "thimble/ops/conv2d/cuda/factor_groups.cuh"
#include "thimble/ops/conv2d/cuda/tap_fill.cuh"
#include "thimble/ops/conv2d/cuda/tap_tile.cuh"

namespace thimble::tap {

// A run: at most 32 neighbouring weights of a row of the tile.
struct Run {
  uint32_t active;  // a bit for each weight
  uint32_t place;   // in the pool, of the first that is active
  int to;           // words from the beginning of the tile
};

// A lane's run while what the pattern says about it is on its way.
struct RunLookup {
  int element, to;
  uint32_t exist;             // a bit for each weight that does
  uint4 low, high;            // the words of the first weight's block
  uint32_t start, next_word;  // of the block; behind the word of the first weight

  // The first `count` of 32 elements from `first` on exist. Reads one word more than the pattern
  // has bits: starts follow them.
  __device__ void Load(const PackedPlace& packed, int first, int count, int to_word) {
    element = count > 0 ? first : 0;
    to = to_word;
    exist = count >= 32 ? ~0U : (1U << max(count, 0)) - 1;
    const int block = element / static_cast<int>(kPatternBlock);
    const uint4* halves = reinterpret_cast<const uint4*>(packed.bits) + 2 * block;
    low = __ldg(halves);
    high = __ldg(halves + 1);
    start = __ldg(packed.starts + block);
    next_word = __ldg(packed.bits + element / static_cast<int>(kPatternWordBits) + 1);
  }

  __device__ Run Find() const {
    const uint32_t words[] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    const int word = element / static_cast<int>(kPatternWordBits) % kPatternBlockWords;
    uint32_t place = start;
    uint32_t own = 0;
#pragma unroll
    for (int w = 0; w < kPatternBlockWords; ++w) {
      if (w < word) place += __popc(words[w]);
      if (w == word) own = words[w];
    }
    const int bit = element % static_cast<int>(kPatternWordBits);
    place += __popc(own & ((1U << bit) - 1));
    return {__funnelshift_r(own, next_word, bit) & exist, place, to};
  }
};

// Loads a number if it is active, without a branch, which would wait for one load after the other.
__device__ inline void LoadActive(const float* from, uint32_t active, uint32_t& bits) {
  asm volatile(
      "{\n"
      "  .reg .pred is_active;\n"
      "  setp.ne.u32 is_active, %2, 0;\n"
      "  mov.b32 %0, 0;\n"
      "  @is_active ld.global.nc.b32 %0, [%1];\n"
      "}"
      : "=&r"(bits)
      : "l"(from), "r"(active));
}
template <class Short>
__device__ void LoadActive(const Short* from, uint32_t active, uint32_t& bits) {
  uint16_t loaded;
  asm volatile(
      "{\n"
      "  .reg .pred is_active;\n"
      "  setp.ne.u32 is_active, %2, 0;\n"
      "  mov.b16 %0, 0;\n"
      "  @is_active ld.global.nc.b16 %0, [%1];\n"
      "}"
      : "=&h"(loaded)
      : "l"(from), "r"(active));
  bits = loaded;
}
// Any type, as a float.
__device__ inline void LoadActive(AnyPointer<const void> from, uint32_t active, uint32_t& bits) {
  bits = active != 0 ? __float_as_uint(LoadNumber(from)) : 0;
}

// Stores 16 bytes in shared memory at once; the compiler would store word by word.
__device__ inline void StoreGroup(const uint4& words, float* to) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(SharedAddress(to)), "r"(words.x),
               "r"(words.y), "r"(words.z), "r"(words.w)
               : "memory");
}

// 16 bytes of factors as they are loaded, a number in each word.
template <Math kMath, class Stored>
struct LoadedGroup {
  static constexpr int kNumbers = kGroupBytes / static_cast<int>(sizeof(Factor<kMath>));
  uint32_t numbers[kNumbers];

  // `active` has the bits of the group first.
  __device__ void Load(InNumbers<Stored> pool, uint32_t active, uint32_t place) {
#pragma unroll
    for (int i = 0; i < kNumbers; ++i) {
      LoadActive(pool + int64_t{place}, active & (1U << i), numbers[i]);
      place += active >> i & 1;
    }
  }

  __device__ void Store(float* to) const {
    if constexpr (IsShort(kMath)) {
      StoreGroup(make_uint4(Two(0), Two(2), Two(4), Two(6)), to);
    } else {
      StoreGroup(make_uint4(One(0), One(1), One(2), One(3)), to);
    }
  }

 private:
  __device__ uint32_t One(int i) const {
    const float number = __uint_as_float(numbers[i]);
    return __float_as_uint(kMath == Math::kTf32 ? RoundToTf32(number) : number);
  }
  __device__ uint32_t Two(int i) const {
    if constexpr (std::is_same_v<Stored, Factor<kMath>>) {
      return numbers[i] | numbers[i + 1] << 16;
    } else {
      return EncodeTwo<Factor<kMath>>(__uint_as_float(numbers[i]), __uint_as_float(numbers[i + 1]));
    }
  }
};

// Copies the weights of all taps of a grid for one tile of result channels and one part. Each warp
// of the threads that copy has a range of the runs, some of which it writes in one round.
template <class T, Weights kLayout>
class PackedCopy {
  using W = WeightTile<T, kLayout>;
  static constexpr int kRunWords = std::min(W::kRowWords, 32 / T::kNumbersPerWord);
  static constexpr int kRunsInRow = W::kRowWords / kRunWords;
  static constexpr int kRunsOfTap = W::kRows * kRunsInRow;
  static constexpr int kLanesOfRun = kRunWords / kGroupWords;
  static constexpr int kRunsAtOnce = 32 / kLanesOfRun;
  // A batch is what a lane loads before it stores: at most five groups, which are all of a large
  // tile's. Floats leave registers for the runs of one search only, because of the source's.
  static constexpr int kMostRuns = T::kShort ? 64 : 32;
  static constexpr int kBatch = std::min(5, kMostRuns / kRunsAtOnce);
  static constexpr int kRoundRuns = kBatch * kRunsAtOnce;
  static constexpr int kRunsOfLane = (kRoundRuns + 31) / 32;
  static constexpr int kWarps = T::kCopiers / 32;

 public:
  // Begins to search for the first runs.
  __device__ void Begin(const PartPlace<T>& place, const TapArrays& arrays) {
    const int count = place.grid().num_taps * kRunsOfTap;
    constexpr int kAtOnce = kWarps * kRunsAtOnce;
    const int of_warp = (count + kAtOnce - 1) / kAtOnce * kRunsAtOnce;
    first_ = Copier<T>() / 32 * of_warp;
    end_ = min(first_ + of_warp, count);
    if (first_ < end_ && place.same_weights == 0) LookUp(place, arrays);
  }

  // Writes all runs. Calls meanwhile() while the first numbers are on their way.
  template <class Meanwhile>
  __device__ void Finish(const PartPlace<T>& place, const TapArrays& arrays, float* to,
                         const Meanwhile& meanwhile) {
    // Numbers of 16 bits are rounded from floats alone.
    using Other = std::conditional_t<T::kShort, float, AnyNumber>;
    if (place.same_weights != 0) {
      meanwhile();
      CopyOwn(to + place.same_weights, to);
    } else if (arrays.weights.type == DTypeOf<typename T::Number>()) {
      Write<typename T::Number, kBatch>(place, arrays, to, meanwhile);
    } else {
      meanwhile();
      Write<Other, 1>(place, arrays, to, [] {});
    }
  }

 private:
  __device__ static int Lane() { return static_cast<int>(threadIdx.x) % 32; }

  // A run's place in the tile.
  struct RunPlace {
    int tap, row, word;

    __device__ explicit RunPlace(int index)
        : tap(index / kRunsOfTap), word(index % kRunsInRow * kRunWords) {
      const int tile_row = index % kRunsOfTap / kRunsInRow;
      row = W::kRowWords == 16 ? RowInOtherBanks(tile_row) : tile_row;
    }
    __device__ int to() const { return tap * W::kWords + row * W::kRowPitch + word; }
  };

  // Called by all lanes: each has a run, or several that are 32 apart.
  __device__ void LookUp(const PartPlace<T>& place, const TapArrays& arrays) {
    const TapConvolution& c = place.c;
#pragma unroll
    for (int i = 0; i < kRunsOfLane; ++i) {
      const RunPlace run(min(first_ + i * 32 + Lane(), end_ - 1));
      const int inner = run.word * T::kNumbersPerWord;
      const int n = place.part.item.result + (W::kBySource ? run.row : inner);
      const int k = place.part.channel + (W::kBySource ? inner : run.row);
      const int left = n >= c.out_channels || k >= c.channels ? 0
                       : W::kBySource                         ? c.channels - k
                                                              : c.out_channels - n;
      const int tap = place.grid().taps[run.tap].weight;
      lookups_[i].Load(arrays.packed, n * c.n_stride + k * c.k_stride + tap * c.t_stride,
                       min(left, kRunWords * T::kNumbersPerWord), run.to());
    }
  }

  template <class Stored, int kAtOnce, class Meanwhile>
  __device__ void Write(const PartPlace<T>& place, const TapArrays& arrays, float* to,
                        const Meanwhile& meanwhile) {
    if (first_ >= end_) meanwhile();
    for (bool is_first = true; first_ < end_; is_first = false) {
      Run runs[kRunsOfLane];
#pragma unroll
      for (int i = 0; i < kRunsOfLane; ++i) runs[i] = lookups_[i].Find();
      const int count = end_ - first_;
      first_ += kRoundRuns;
      if (first_ < end_) LookUp(place, arrays);
#pragma unroll 1
      for (int step = 0; step < kBatch; step += kAtOnce) {
        WriteRuns<Stored, kAtOnce>(runs, step * kRunsAtOnce, count, As<Stored>(arrays.weights), to,
                                   [&] {
                                     if (is_first && step == 0) meanwhile();
                                   });
      }
    }
  }

  // Writes some of the runs that a warp's lanes have found, from index `first` on; there are
  // `count`.
  template <class Stored, int kSteps, class Meanwhile>
  __device__ static void WriteRuns(const Run (&runs)[kRunsOfLane], int first, int count,
                                   InNumbers<Stored> pool, float* to, const Meanwhile& meanwhile) {
    LoadedGroup<T::kMath, Stored> groups[kSteps];
    int places[kSteps];
    const int group = Lane() % kLanesOfRun;
    const int bit = group * LoadedGroup<T::kMath, Stored>::kNumbers;
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      const int first_of_step = first + i * kRunsAtOnce;
      Run run = runs[0];
#pragma unroll
      for (int k = 1; k < kRunsOfLane; ++k) {
        if (first_of_step >= 32 * k) run = runs[k];
      }
      const int index = first_of_step + Lane() / kLanesOfRun;
      const uint32_t active = __shfl_sync(0xFFFFFFFFU, run.active, index % 32);
      const uint32_t place = __shfl_sync(0xFFFFFFFFU, run.place, index % 32);
      places[i] = __shfl_sync(0xFFFFFFFFU, run.to, index % 32) + group * kGroupWords;
      groups[i].Load(pool, index < count ? active >> bit : 0,
                     place + __popc(active & ((1U << bit) - 1)));
    }
    meanwhile();
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      if (first + i * kRunsAtOnce + Lane() / kLanesOfRun < count) groups[i].Store(to + places[i]);
    }
  }

  // Copies what this thread has written to another slot.
  __device__ void CopyOwn(const float* from, float* to) const {
#pragma unroll 4
    for (int index = first_ + Lane() / kLanesOfRun; index < end_; index += kRunsAtOnce) {
      const int at = RunPlace(index).to() + Lane() % kLanesOfRun * kGroupWords;
      StoreGroup(*reinterpret_cast<const uint4*>(from + at), to + at);
    }
  }

  RunLookup lookups_[kRunsOfLane];
  int first_ = 0;  // of the warp's runs, those that are not written yet
  int end_ = 0;
};

}  // namespace thimble::tap
