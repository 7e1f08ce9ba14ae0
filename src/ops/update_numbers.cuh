// Four numbers of any storage type, as a thread of an update reads and writes them. All threads of
// a block (kUpdateThreads) call these functions together: q8 needs the largest number of 64
// threads.
#pragma once

#include <array>
#include <cstdint>

#include "thimble/device/cuda/numbers.cuh"
#include "thimble/ops/update_tensors.h"
#include "thimble/tensor/rounding_draw.h"
#include "thimble/tensor/short_numbers.h"

namespace thimble {

// The place of a thread: the tensor of its block, and its own first element.
struct UpdatePlace {
  int tensor, first;

  template <class List>
  __device__ explicit UpdatePlace(const List& tensors)
      : tensor(tensors.Find(static_cast<int>(blockIdx.x))),
        first((static_cast<int>(blockIdx.x) - tensors.tensors[tensor].first_block) *
                  kUpdateBlockElements +
              4 * static_cast<int>(threadIdx.x)) {}
};

struct FourNumbers {
  float numbers[4] = {0, 0, 0, 0};
};

struct FourRounding {
  bool stochastic = false;
  std::array<uint32_t, 4> words = {};
};

// Element i and those after it, of which there are `count`; `i` is a multiple of 4. An array that
// the op does not have is null.
template <class Stored>
__device__ inline FourNumbers LoadFourOf(const void* array, int i, int count) {
  FourNumbers four;
  const auto* from = static_cast<const Stored*>(array) + i;
  if (count == 4 && reinterpret_cast<uintptr_t>(from) % (4 * sizeof(Stored)) == 0) {
    const float4 numbers = LoadFour(from);
    return {{numbers.x, numbers.y, numbers.z, numbers.w}};
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (k < count) four.numbers[k] = LoadNumber(from + k);
  }
  return four;
}

template <class Stored>
__device__ inline void StoreFourOf(const FourNumbers& four, void* array, int i, int count) {
  auto* to = static_cast<Stored*>(array) + i;
  if (count == 4 && reinterpret_cast<uintptr_t>(to) % (4 * sizeof(Stored)) == 0) {
    return StoreFour(
        make_float4(four.numbers[0], four.numbers[1], four.numbers[2], four.numbers[3]), to);
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (k < count) StoreNumber(four.numbers[k], to + k);
  }
}

__device__ inline FourNumbers LoadFourFloats(const void* array, int i, int count) {
  return array == nullptr ? FourNumbers{} : LoadFourOf<float>(array, i, count);
}
__device__ inline void StoreFourFloats(const FourNumbers& four, void* array, int i, int count) {
  if (array != nullptr) StoreFourOf<float>(four, array, i, count);
}

// Of q8: the block of element i, and its integers from i on.
template <class Byte>
__device__ inline Byte* BlockOf(Byte* array, int i) {
  return array + static_cast<int64_t>(i / static_cast<int>(kQ8BlockNumbers)) *
                     static_cast<int64_t>(kQ8BlockBytes);
}
__device__ inline int PlaceInBlock(int i) {
  return static_cast<int>(sizeof(float)) + i % static_cast<int>(kQ8BlockNumbers);
}

__device__ inline FourNumbers LoadQ8(const void* array, int i, int count) {
  FourNumbers four;
  if (count == 0) return four;
  const std::byte* block = BlockOf(static_cast<const std::byte*>(array), i);
  const float scale = *reinterpret_cast<const float*>(block);
  const auto integers = *reinterpret_cast<const char4*>(block + PlaceInBlock(i));  // padded
  const signed char values[4] = {integers.x, integers.y, integers.z, integers.w};
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (k < count) four.numbers[k] = static_cast<float>(values[k]) * scale;
  }
  return four;
}

// The largest magnitude, as bits, among the threads of a block of q8.
__device__ inline uint32_t LargestInQ8Block(uint32_t magnitude) {
  constexpr int kWarps = kUpdateThreads / 32;
  constexpr int kWarpsPerBlock = static_cast<int>(kQ8BlockNumbers) / 4 / 32;
  static_assert(kWarpsPerBlock == 2);
  __shared__ uint32_t largest[kWarps];
  for (int distance = 16; distance > 0; distance /= 2) {
    magnitude = max(magnitude, __shfl_xor_sync(0xFFFFFFFFU, magnitude, distance));
  }
  const int warp = static_cast<int>(threadIdx.x) / 32;
  __syncthreads();  // of an earlier call
  if (threadIdx.x % 32 == 0) largest[warp] = magnitude;
  __syncthreads();
  return max(largest[warp], largest[warp ^ 1]);
}

__device__ inline void StoreQ8(const FourNumbers& four, const FourRounding& rounding, int shift,
                               void* array, int i, int count) {
  uint32_t magnitude = 0;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (k < count) magnitude = max(magnitude, __float_as_uint(four.numbers[k]) & 0x7FFFFFFFU);
  }
  const float scale = Q8Scale(__uint_as_float(LargestInQ8Block(magnitude)));
  if (count == 0) return;
  const float inverse = Q8Inverse(scale);
  signed char values[4] = {0, 0, 0, 0};
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (k >= count) continue;
    float level = four.numbers[k] * inverse;
    if (rounding.stochastic) {
      const uint32_t random = rounding.words[k] >> shift & 0xFFFFU;
      level = floorf(__fadd_rn(level, static_cast<float>(random) * 0x1p-16F));
    } else {
      level = rintf(level);
    }
    values[k] = static_cast<signed char>(fmaxf(fminf(level, 127.0F), -127.0F));
  }
  std::byte* block = BlockOf(static_cast<std::byte*>(array), i);
  if (i % static_cast<int>(kQ8BlockNumbers) == 0) *reinterpret_cast<float*>(block) = scale;
  *reinterpret_cast<char4*>(block + PlaceInBlock(i)) =
      make_char4(values[0], values[1], values[2], values[3]);
}

// The functions below know q8 only if kQ8 says so: it needs all threads of a block.
template <bool kQ8 = true>
__device__ inline FourNumbers LoadFourNumbers(DType type, const void* array, int i, int count) {
  if (array == nullptr) return {};
  switch (type) {
    case DType::kF16:
      return LoadFourOf<F16>(array, i, count);
    case DType::kBF16:
      return LoadFourOf<BF16>(array, i, count);
    case DType::kQ8:
      if constexpr (kQ8) return LoadQ8(array, i, count);
      return {};
    default:
      return LoadFourOf<float>(array, i, count);
  }
}

// What an array of f32, f16 or bf16 would store of these numbers.
__device__ inline FourNumbers RoundFourNumbers(DType type, FourNumbers four,
                                               const FourRounding& rounding, int shift) {
  const auto round = [&](const auto& to_short) {
#pragma unroll
    for (int k = 0; k < 4; ++k) four.numbers[k] = to_short(four.numbers[k], k);
  };
  const auto random = [&](int k) { return rounding.words[k] >> shift; };
  if (type == DType::kF16 && rounding.stochastic) {
    round([&](float number, int k) { return RoundToF16AtRandom(number, random(k)); });
  } else if (type == DType::kF16) {
    round([](float number, int) { return __half2float(__float2half_rn(number)); });
  } else if (type == DType::kBF16 && rounding.stochastic) {
    round([&](float number, int k) { return RoundToBF16AtRandom(number, random(k)); });
  } else if (type == DType::kBF16) {
    round([](float number, int) { return __bfloat162float(__float2bfloat16_rn(number)); });
  }
  return four;
}

// `output` is the index among the op's outputs, which decides the bits of the words.
template <bool kQ8 = true>
__device__ inline void StoreFourNumbers(DType type, FourNumbers four, const FourRounding& rounding,
                                        int output, void* array, int i, int count) {
  const int shift = RoundingDraw::ShiftOf(output);
  switch (type) {
    case DType::kF16:
      return StoreFourOf<F16>(RoundFourNumbers(type, four, rounding, shift), array, i, count);
    case DType::kBF16:
      return StoreFourOf<BF16>(RoundFourNumbers(type, four, rounding, shift), array, i, count);
    case DType::kQ8:
      if constexpr (kQ8) StoreQ8(four, rounding, shift, array, i, count);
      return;
    default:
      return StoreFourOf<float>(four, array, i, count);
  }
}

// The stored bytes as they are.
template <class Word>
__device__ inline void CopyWords(const void* from, void* to, int i, int count) {
  for (int k = 0; k < count; ++k) {
    static_cast<Word*>(to)[i + k] = static_cast<const Word*>(from)[i + k];
  }
}
// If both have one type; otherwise rounded to the nearest.
template <bool kQ8 = true>
__device__ inline void CopyFourNumbers(DType from_type, const void* from, DType to_type, void* to,
                                       int i, int count) {
  if (from_type != to_type) {
    return StoreFourNumbers<kQ8>(to_type, LoadFourNumbers<kQ8>(from_type, from, i, count), {}, 0,
                                 to, i, count);
  }
  if (from == to || count == 0) return;
  if (from_type == DType::kF32) return CopyWords<uint32_t>(from, to, i, count);
  if (!kQ8 || from_type != DType::kQ8) return CopyWords<uint16_t>(from, to, i, count);
  const std::byte* old_block = BlockOf(static_cast<const std::byte*>(from), i);
  std::byte* block = BlockOf(static_cast<std::byte*>(to), i);
  if (i % static_cast<int>(kQ8BlockNumbers) == 0) {
    *reinterpret_cast<float*>(block) = *reinterpret_cast<const float*>(old_block);
  }
  *reinterpret_cast<char4*>(block + PlaceInBlock(i)) =
      *reinterpret_cast<const char4*>(old_block + PlaceInBlock(i));
}

}  // namespace thimble
