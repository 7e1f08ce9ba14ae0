// Chooses the smallest of many keys (tensor/smallest_keys.h) on the GPU, by one block of threads.
// All its threads call these functions together.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/tensor/smallest_keys.h"

namespace thimble {

inline constexpr int kSelectThreads = 1024;

struct BlockSum {
  uint32_t before = 0;  // of the threads before this one
  uint32_t all = 0;
};

// Sums one number of each thread.
__device__ inline BlockSum SumBlock(uint32_t number) {
  static_assert(kSelectThreads == 32 * 32);
  __shared__ uint32_t warp_ends[32];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const auto sum_warp = [lane](uint32_t sum) {
    for (int distance = 1; distance < 32; distance *= 2) {
      const uint32_t other = __shfl_up_sync(0xFFFFFFFFU, sum, distance);
      if (lane >= distance) sum += other;
    }
    return sum;
  };
  const uint32_t sum = sum_warp(number);
  __syncthreads();  // of an earlier call
  if (lane == 31) warp_ends[warp] = sum;
  __syncthreads();
  if (warp == 0) warp_ends[lane] = sum_warp(warp_ends[lane]);
  __syncthreads();
  return {sum - number + (warp == 0 ? 0 : warp_ends[warp - 1]), warp_ends[31]};
}

// Words [begin, end) of a pattern. `Keys` has
//   void Visit(int64_t word, const Body& body)
// which calls body(bit, key) for each position of a word that has a key.
struct WordRange {
  int64_t begin = 0;
  int64_t end = 0;
};

struct ChosenDigit {
  uint32_t digit = 0;
  uint32_t before = 0;  // keys with smaller digits
  uint32_t count = 0;   // keys with this one
};

// The digit of the key that is number `wanted`, counted from 1.
__device__ inline ChosenDigit FindDigit(const uint32_t* counts, uint32_t wanted) {
  __shared__ ChosenDigit found;
  const uint32_t digit = 2 * threadIdx.x;
  const uint32_t first = counts[digit];
  const uint32_t second = counts[digit + 1];
  const uint32_t before = SumBlock(first + second).before;
  if (before < wanted && wanted <= before + first) found = {digit, before, first};
  if (before + first < wanted && wanted <= before + first + second) {
    found = {digit + 1, before + first, second};
  }
  __syncthreads();
  return found;
}

// As FindSmallestKeys. Requires 1 <= wanted <= number of keys.
template <class Keys>
__device__ SmallestKeys FindSmallestInBlock(const Keys& keys, const WordRange& words,
                                            uint32_t wanted) {
  constexpr int kDigitBits = 11;
  static_assert(1 << kDigitBits == 2 * kSelectThreads);
  __shared__ uint32_t counts[1 << kDigitBits];
  KeyRange range;
  for (int shift = 32; shift > 0;) {
    const int digit_bits = min(kDigitBits, shift);
    shift -= digit_bits;
    const uint32_t last_digit = (1U << digit_bits) - 1;
    counts[threadIdx.x] = counts[threadIdx.x + kSelectThreads] = 0;
    __syncthreads();
    for (int64_t word = words.begin + threadIdx.x; word < words.end; word += kSelectThreads) {
      keys.Visit(word, [&](uint32_t /*bit*/, uint32_t key) {
        // Counts of integers: the order of the additions does not matter.
        if (range.Contains(key)) atomicAdd(&counts[key >> shift & last_digit], 1U);
      });
    }
    __syncthreads();
    const ChosenDigit chosen = FindDigit(counts, wanted);
    wanted -= chosen.before;
    range.first |= chosen.digit << shift;
    range.last = range.first | ((1U << shift) - 1);
    if (chosen.count == wanted) return {uint64_t{range.last} + 1, 0};
  }
  return {range.first, wanted};
}

// Sets the bits of chosen keys in `pattern`. Returns how many.
template <class Keys>
__device__ uint32_t SetChosenBits(const Keys& keys, const WordRange& words, SmallestKeys chosen,
                                  uint32_t* pattern) {
  uint32_t count = 0;
  for (int64_t first = words.begin; first < words.end; first += kSelectThreads) {
    const int64_t word = first + threadIdx.x;
    uint32_t taken = 0;
    uint32_t equal = 0;
    if (word < words.end) {
      keys.Visit(word, [&](uint32_t bit, uint32_t key) {
        if (key < chosen.below) taken |= bit;
        if (key == chosen.below) equal |= bit;
      });
    }
    const BlockSum sum = SumBlock(static_cast<uint32_t>(__popc(equal)));
    for (int64_t left = chosen.equal - sum.before; left > 0 && equal != 0; --left) {
      taken |= equal & (~equal + 1);
      equal &= equal - 1;
    }
    chosen.equal -= sum.all;
    if (taken != 0) pattern[word] |= taken;
    count += static_cast<uint32_t>(__popc(taken));
  }
  return SumBlock(count).all;
}

}  // namespace thimble
