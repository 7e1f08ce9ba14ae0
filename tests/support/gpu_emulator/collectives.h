// Functions of CUDA C++ that threads of a block or lanes of a warp call together.
#pragma once

#include <cstdint>
#include <cstring>
#include <source_location>

#include "tests/support/gpu_emulator/block.h"

inline constexpr int warpSize = gpu_emulator::kWarpLanes;

// ---- Blocks

#define GPU_EMULATOR_WHERE const std::source_location& where = std::source_location::current()

inline void __syncthreads(GPU_EMULATOR_WHERE) {
  gpu_emulator::WaitAtBarrier({"__syncthreads", where}, 0, gpu_emulator::kAllThreads, false);
}
inline int __syncthreads_count(int vote, GPU_EMULATOR_WHERE) {
  return gpu_emulator::WaitAtBarrier({"__syncthreads_count", where}, 0, gpu_emulator::kAllThreads,
                                     vote != 0)
      .in_favour;
}
inline int __syncthreads_or(int vote, GPU_EMULATOR_WHERE) {
  return __syncthreads_count(vote, where) != 0 ? 1 : 0;
}
inline int __syncthreads_and(int vote, GPU_EMULATOR_WHERE) {
  const auto votes = gpu_emulator::WaitAtBarrier({"__syncthreads_and", where}, 0,
                                                 gpu_emulator::kAllThreads, vote != 0);
  return votes.in_favour == votes.all ? 1 : 0;
}

// ---- Warps

namespace gpu_emulator {

// A lane's part of a shuffle.
struct Shuffled {
  uint64_t bits = 0;  // the value, and then the one it receives
  int from = 0;       // the lane it reads, always one of the warp
};
void Shuffle(const Site& site, uint32_t mask, Shuffled& own);

// The lane that a shuffle reads; its own if that would be in another segment of `width` lanes.
inline int InSegment(int lane, int width) {
  const int segment = Lane() / width;
  return lane >= segment * width && lane < (segment + 1) * width ? lane : Lane();
}

template <class T>
T ShuffleFrom(const Site& site, uint32_t mask, T value, int from) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  Shuffled own{.bits = 0, .from = from};
  std::memcpy(&own.bits, &value, sizeof(T));
  Shuffle(site, mask, own);
  std::memcpy(&value, &own.bits, sizeof(T));
  return value;
}

// What the lanes of `mask` that have not ended compute from a word of each; all receive it.
enum class Reduction { kAdd, kMin, kMax, kSignedMin, kSignedMax, kAnd, kOr, kXor, kBallot };
struct Reduced {
  uint32_t word = 0;  // the lane's own, and then the result
  Reduction how{};
};
uint32_t Reduce(const Site& site, uint32_t mask, uint32_t word, Reduction how);

void SyncLanes(const Site& site, uint32_t mask);

}  // namespace gpu_emulator

inline void __syncwarp(unsigned mask = 0xFFFFFFFFU, GPU_EMULATOR_WHERE) {
  gpu_emulator::SyncLanes({"__syncwarp", where}, mask);
}

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = warpSize, GPU_EMULATOR_WHERE) {
  const int segment = gpu_emulator::Lane() / width * width;
  return gpu_emulator::ShuffleFrom({"__shfl_sync", where}, mask, value,
                                   segment + (lane & (width - 1)));
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = warpSize, GPU_EMULATOR_WHERE) {
  const int lane = gpu_emulator::Lane() - static_cast<int>(by);
  return gpu_emulator::ShuffleFrom({"__shfl_up_sync", where}, mask, value,
                                   gpu_emulator::InSegment(lane, width));
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = warpSize, GPU_EMULATOR_WHERE) {
  const int lane = gpu_emulator::Lane() + static_cast<int>(by);
  return gpu_emulator::ShuffleFrom({"__shfl_down_sync", where}, mask, value,
                                   gpu_emulator::InSegment(lane, width));
}
// Unlike the others it may read a lower segment.
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int by, int width = warpSize, GPU_EMULATOR_WHERE) {
  const int lane = (gpu_emulator::Lane() ^ by) & (warpSize - 1);
  const bool is_later = lane / width > gpu_emulator::Lane() / width;
  return gpu_emulator::ShuffleFrom({"__shfl_xor_sync", where}, mask, value,
                                   is_later ? gpu_emulator::Lane() : lane);
}

inline unsigned __ballot_sync(unsigned mask, int vote, GPU_EMULATOR_WHERE) {
  return gpu_emulator::Reduce({"__ballot_sync", where}, mask, vote != 0 ? 1 : 0,
                              gpu_emulator::Reduction::kBallot);
}
inline int __any_sync(unsigned mask, int vote, GPU_EMULATOR_WHERE) {
  return static_cast<int>(gpu_emulator::Reduce({"__any_sync", where}, mask, vote != 0 ? 1 : 0,
                                               gpu_emulator::Reduction::kOr));
}
inline int __all_sync(unsigned mask, int vote, GPU_EMULATOR_WHERE) {
  return static_cast<int>(gpu_emulator::Reduce({"__all_sync", where}, mask, vote != 0 ? 1 : 0,
                                               gpu_emulator::Reduction::kMin));
}

#define GPU_EMULATOR_REDUCE(name, type, how)                                               \
  inline type name(unsigned mask, type word, GPU_EMULATOR_WHERE) {                         \
    return static_cast<type>(gpu_emulator::Reduce(                                         \
        {#name, where}, mask, static_cast<uint32_t>(word), gpu_emulator::Reduction::how)); \
  }
GPU_EMULATOR_REDUCE(__reduce_add_sync, unsigned, kAdd)
GPU_EMULATOR_REDUCE(__reduce_add_sync, int, kAdd)
GPU_EMULATOR_REDUCE(__reduce_min_sync, unsigned, kMin)
GPU_EMULATOR_REDUCE(__reduce_min_sync, int, kSignedMin)
GPU_EMULATOR_REDUCE(__reduce_max_sync, unsigned, kMax)
GPU_EMULATOR_REDUCE(__reduce_max_sync, int, kSignedMax)
GPU_EMULATOR_REDUCE(__reduce_and_sync, unsigned, kAnd)
GPU_EMULATOR_REDUCE(__reduce_or_sync, unsigned, kOr)
GPU_EMULATOR_REDUCE(__reduce_xor_sync, unsigned, kXor)
#undef GPU_EMULATOR_REDUCE
