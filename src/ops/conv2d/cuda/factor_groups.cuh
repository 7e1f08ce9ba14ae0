// Groups of factors, 16 bytes each, from global to shared memory: four floats, or eight numbers of
// 16 bits. A tile of factors consists of such groups.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "thimble/device/cuda/async_copy.cuh"
#include "thimble/device/cuda/load_singly.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/device/cuda/tensor_core.cuh"

namespace thimble {

inline constexpr int kGroupBytes = kCopiedBytes;
inline constexpr int kGroupWords = kGroupBytes / 4;

// How floats are copied: four at once, if the number of channels is a multiple of four, or one by
// one. kAny: one by one, converted from numbers of any type.
enum class Channels { kFours, kOdd, kAny };

// Storage of numbers that are copied to floats.
template <Channels kChannels>
using FloatStorage = std::conditional_t<kChannels == Channels::kAny, AnyNumber, float>;

// Stores a number of any type. Not inlined, as LoadSingly.
static __noinline__ __device__ void StoreSingly(float number, Numbers to) {
  StoreNumber(number, to);
}
__device__ inline void StoreSingly(float number, float* to) { *to = number; }

template <Channels kChannels>
struct FloatGroups {
  using Number = float;
  static constexpr int kNumbers = 4;  // in a group
  InNumbers<FloatStorage<kChannels>> numbers;

  // The same from an element on.
  __device__ FloatGroups From(int64_t first) const { return {numbers + first}; }
  // Copies the group from `index` on; only the first `valid` exist, the others become zero.
  __device__ void Copy(int index, int valid, float* to) const {
    const auto from = numbers + (valid > 0 ? index : 0);
    if constexpr (kChannels == Channels::kFours) {
      CopyGroupAsync(to, from, valid > 0);
    } else if constexpr (kChannels == Channels::kAny) {
      StoreFour(LoadSingly(from, valid), to);
    } else {
#pragma unroll
      for (int i = 0; i < kNumbers; ++i) {
        CopyWordAsync(to + i, valid > i ? from + i : from, valid > i ? 4 : 0);
      }
    }
  }
};

// How numbers come into groups of 16-bit factors.
enum class Copying {
  kAsync,   // they are stored as the factors, in whole groups
  kFloats,  // whole groups of floats, rounded
  kSingly,  // any type, one by one
};

// `inner` is the number of adjacent elements, of which each group has eight.
constexpr Copying CopyingOf(DType stored, DType factor, int inner) {
  if (inner % 8 != 0) return Copying::kSingly;
  return stored == factor        ? Copying::kAsync
         : stored == DType::kF32 ? Copying::kFloats
                                 : Copying::kSingly;
}

// Copies a group that is not stored as its factors are. Not inlined, because it is rarely used and
// would be most of a kernel's code.
template <class Number>
__noinline__ __device__ void CopyRounded(ConstNumbers numbers, Copying copying, int index,
                                         int valid, Number* to) {
  float4 low = make_float4(0, 0, 0, 0);
  float4 high = low;
  if (copying == Copying::kFloats) {
    const float* from = static_cast<const float*>(numbers.data) + index;
    if (valid > 0) low = LoadFour(from);
    if (valid > 4) high = LoadFour(from + 4);
  } else {
    const AnyPointer<const void> from = numbers;
    low = LoadSingly(from + index, valid);
    high = LoadSingly(from + (index + 4), valid - 4);
  }
  StoreFour(low, to);
  StoreFour(high, to + 4);
}

// Factors of 16 bits from numbers of any type.
template <class Number_>
struct ShortGroups {
  using Number = Number_;
  static constexpr int kNumbers = 8;  // in a group
  ConstNumbers numbers;
  Copying copying;

  __device__ ShortGroups From(int64_t first) const {
    return {AnyPointer<const void>(numbers) + first, copying};
  }
  // Whether copies of this kind are complete only after WaitForCopies().
  __device__ bool is_async() const { return copying == Copying::kAsync; }

  __device__ void Copy(int index, int valid, Number* to) const {
    is_async() ? Copy<true>(index, valid, to) : Copy<false>(index, valid, to);
  }
  // The same if it is known before a loop. Requires kAsync == is_async().
  template <bool kAsync>
  __device__ void Copy(int index, int valid, Number* to) const {
    if constexpr (kAsync) {
      const Number* from = static_cast<const Number*>(numbers.data);
      CopyGroupAsync(to, from + (valid > 0 ? index : 0), valid > 0);
    } else {
      CopyRounded(numbers, copying, index, valid, to);
    }
  }
};

}  // namespace thimble
