// The common part of convolutions and weight gradients of many channels on sm_90: a block computes
// a tile of sums, 128 rows by kColumns, as a product of two factors of 16 bits. Two warpgroups
// multiply what is in a ring of slots in shared memory, each with a part of the inner dimension;
// one of their threads lets the copy engine fill the slots. The blocks of a cluster share the inner
// dimension and add up their sums.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "thimble/device/cuda/bulk_copy.cuh"
#include "thimble/device/cuda/cluster_sums.cuh"
#include "thimble/device/cuda/handover.cuh"
#include "thimble/device/cuda/warpgroup.cuh"

namespace thimble::wide {

inline constexpr int kGroups = 2;  // warpgroups that multiply
inline constexpr int kRows = kGroups * kWarpgroupRows;
inline constexpr int kThreads = kGroups * kWarpgroupThreads;
inline constexpr int kInner = 64;  // of a slot

// Without the instructions of sm_90a a kernel is empty, which its launch bounds tell the host, and
// what only it uses is not used.
#if !THIMBLE_HAS_WARPGROUPS
#pragma nv_diag_suppress 177
#endif
#if !defined(__CUDA_ARCH__) || THIMBLE_HAS_WARPGROUPS
inline constexpr int kLaunchBound = kThreads;
#else
inline constexpr int kLaunchBound = 32;
#endif

// Two blocks run on a multiprocessor of 227 KB.
inline constexpr int kMaxRingBytes = 110 << 10;

// The shape of a factor in a slot: chunks of kChunk numbers, and whether the inner dimension runs
// across them (warpgroup.cuh).
template <int kChunk_, bool kAcross_>
struct FactorShape {
  static constexpr int kChunk = kChunk_;
  static constexpr bool kAcross = kAcross_;
  static constexpr int kRowBytes = kChunkRowBytes<kChunk>;
  // Rows across are those of the inner dimension.
  static constexpr int kChunkBytes = kInner * kRowBytes;
  static_assert(kAcross || kChunk == kInner);
};

template <class Number_, int kColumns_, class A_, class B_>
struct Product {
  using Number = Number_;
  using A = A_;  // kRows numbers for each of the inner dimension
  using B = B_;  // kColumns
  static constexpr int kColumns = kColumns_;
  static constexpr int kGroupBytes = kWarpgroupRows * kInner * 2;  // of A, for one warpgroup
  static constexpr int kBytesA = kGroups * kGroupBytes;
  static constexpr int kSlotBytes = kBytesA + kColumns * kInner * 2;
  static constexpr int kSlots = std::min(5, kMaxRingBytes / kSlotBytes);
  static_assert(kColumns % B::kChunk == 0 || !B::kAcross);
};

struct Ring {
  static constexpr int kMaxSlots = 5;
  Handover full[kMaxSlots], empty[kMaxSlots];

  // Called by all threads of a block. Warps of so many blocks hand slots back.
  __device__ void Make(int reading_blocks = 1) {
    if (threadIdx.x == 0) {
      for (int slot = 0; slot < kMaxSlots; ++slot) {
        full[slot].Make(1);
        empty[slot].Make(reading_blocks * kThreads / 32);
      }
      ShowHandoversToCopies();
    }
    __syncthreads();
  }
};

// The first aligned address of the block's shared memory.
__device__ inline float* AlignedShared(float* shared) {
  const uint32_t address = SharedAddress(shared);
  return shared + ((kChunkAlignment - address % kChunkAlignment) % kChunkAlignment) / sizeof(float);
}
template <class P>
inline constexpr int kSharedBytes = P::kSlots* P::kSlotBytes + kChunkAlignment;

#if THIMBLE_HAS_WARPGROUPS
// Adds the products of the first kCount numbers of the inner dimension; if they are the `first`,
// the sums begin with them.
template <class P, int kCount>
__device__ void MultiplySlot(uint64_t a, uint64_t b, bool first, WarpgroupSums<P::kColumns>& sums) {
  using A = typename P::A;
  using B = typename P::B;
  BeginProducts();
#pragma unroll
  for (int step = 0; step < kCount / kWarpgroupInner; ++step) {
    MultiplyAsync<typename P::Number, P::kColumns, A::kAcross, B::kAcross>(
        a + step * kNextInner<A::kChunk, A::kAcross>, b + step * kNextInner<B::kChunk, B::kAcross>,
        step > 0 || !first, sums);
  }
  CommitProducts();
}

// Sums the products of all parts. load(address, handover) lets the copy engine fill a slot with the
// next part, called by one thread; next_is_whole() says whether the second half of the next part's
// inner dimension is not all zero.
template <class P, class Load, class IsWhole>
__device__ void MultiplyParts(Ring& ring, uint32_t slots, int parts, Load load,
                              IsWhole next_is_whole, WarpgroupSums<P::kColumns>& sums) {
  using A = typename P::A;
  using B = typename P::B;
  const uint32_t group = threadIdx.x / kWarpgroupThreads;
  const auto fill = [&](int slot) {
    ArriveAndExpect(ring.full[slot], P::kSlotBytes);
    load(slots + slot * P::kSlotBytes, ring.full[slot]);
  };
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < min(parts, P::kSlots); ++slot) fill(slot);
  }
  __syncwarp();
  int slot = 0;
  int before = 0;           // the slot of the part before
  bool odd = false;         // whether the slot was used an odd number of times before
  bool odd_before = false;  // the same of the slot before
#pragma unroll 1
  for (int part = 0; part < parts; ++part) {
    ring.full[slot].Wait(odd);
    const uint32_t at = slots + slot * P::kSlotBytes;
    const uint64_t a = FactorAt<A::kChunk, A::kAcross>(at + group * P::kGroupBytes, A::kChunkBytes);
    const uint64_t b = FactorAt<B::kChunk, B::kAcross>(at + P::kBytesA, B::kChunkBytes);
    next_is_whole() ? MultiplySlot<P, kInner>(a, b, part == 0, sums)
                    : MultiplySlot<P, kInner / 2>(a, b, part == 0, sums);
    WaitForProductsBut<1>();
    // The part before is multiplied: its slot gets the next part that is not in the ring yet.
    if (part > 0) {
      if (threadIdx.x % 32 == 0) ring.empty[before].Arrive();
      if (threadIdx.x == 0 && part - 1 + P::kSlots < parts) {
        ring.empty[before].Wait(odd_before);
        fill(before);
      }
      __syncwarp();
    }
    before = slot;
    odd_before = odd;
    if (++slot == P::kSlots) {
      slot = 0;
      odd = !odd;
    }
  }
  WaitForProductsBut<0>();
  if (parts == 0) {
#pragma unroll
    for (float& sum : sums) sum = 0;
  }
}
#endif

// Calls place(row, column) for this thread's pairs of sums, whose columns are neighbours, with
// their index.
template <int kColumns, class Visit>
__device__ void ForEachPair(const Visit& visit) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4;
#pragma unroll
  for (int i = 0; i < kColumns / 4; ++i) {
    visit(row + i % 2 * 8, i / 2 * 8 + lane % 4 * 2, 2 * i);
  }
}

// An estimate of a kernel's time, in cycles of a large GPU, for choosing a tiling: the copies and
// products of the busiest multiprocessor, and what a cluster's exchange and a launch take. Measured
// on an H200, where a multiprocessor receives about 28 bytes per cycle from the second-level cache.
inline double EstimatedCycles(int columns, int64_t blocks, int parts, int cluster_blocks) {
  constexpr int64_t kMultiprocessors = 132;
  constexpr double kCopiedBytes = 28;
  constexpr double kProducts = 1400;  // of a peak of 2,048
  constexpr double kExchangedBytes = 24;
  constexpr double kLaunch = 4000;
  const double part =
      kInner * std::max(2 * (kRows + columns) / kCopiedBytes, kRows * columns / kProducts);
  const double exchange = cluster_blocks > 1 ? 4 * kRows * columns / kExchangedBytes : 0;
  const auto rounds = static_cast<double>((blocks + kMultiprocessors - 1) / kMultiprocessors);
  return kLaunch + rounds * (parts * part + exchange);
}

// Allows the kernel this much shared memory. False if this GPU does not have its instructions.
template <class Kernel>
bool Prepare(Kernel kernel, int shared_bytes, int threads = kThreads) {
  cudaFuncAttributes attributes{};
  THIMBLE_CUDA(cudaFuncGetAttributes(&attributes, kernel));
  if (attributes.maxThreadsPerBlock < threads) return false;
  THIMBLE_CUDA(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
  return true;
}

}  // namespace thimble::wide
