// A block computes a tile of 128 x 128. The two blocks of a cluster, one tile above the other, need
// the same columns of B: each asks the copy engine for half of them, for both. The second-level
// cache, whose bandwidth limits products of this size, then delivers a quarter fewer bytes.
//
// One warp of a block only asks for copies; two warpgroups multiply. A block has a multiprocessor
// for itself.
#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/product/factor_map.cuh"
#include "thimble/device/cuda/product/pair_matrix_product.h"
#include "thimble/device/cuda/product/short_tile.cuh"
#include "thimble/device/cuda/wide_product.cuh"

namespace thimble {
namespace wide {
namespace {

constexpr int kPairBlocks = 2;
constexpr int kPairThreads = kThreads + 32;
constexpr int kPairHalf = kPairColumns / 2;
constexpr int kPairHalfBytes = kPairHalf * kInner * 2;
constexpr uint32_t kBothBlocks = 3;
constexpr int kPairSlots = Ring::kMaxSlots;

#if !defined(__CUDA_ARCH__) || THIMBLE_HAS_WARPGROUPS
constexpr int kPairBound = kPairThreads;
#else
constexpr int kPairBound = 32;
#endif

template <class Number, bool kAcrossB>
using PairProduct =
    Product<Number, kPairColumns, FactorShape<kInner, false>, FactorShape<kInner, kAcrossB>>;

// The next slot of a ring, and the phase of its handovers.
struct RingPlace {
  int slot = 0;
  bool odd = false;

  __device__ void Next() {
    if (++slot < kPairSlots) return;
    slot = 0;
    odd = !odd;
  }
};

#if THIMBLE_HAS_WARPGROUPS
// Lets the copy engine fill the slots. One thread calls it.
template <class P>
__device__ void CopyParts(Ring& ring, uint32_t slots, int parts, int rank, int first_row,
                          int first_column, const CUtensorMap& a, const CUtensorMap& b) {
  const int column = first_column + rank * kPairHalf;
  RingPlace place;
  for (int part = 0; part < parts; ++part) {
    Handover& full = ring.full[place.slot];
    if (part >= kPairSlots) ring.empty[place.slot].Wait(!place.odd);
    const uint32_t to = slots + place.slot * P::kSlotBytes;
    const int inner = part * kInner;
    ArriveAndExpect(full, P::kSlotBytes);
    CopyBoxToBlocks(b, P::B::kAcross ? column : inner, P::B::kAcross ? inner : column,
                    to + P::kBytesA + rank * kPairHalfBytes, full, kBothBlocks);
    CopyBox(a, inner, first_row, to, full);
    place.Next();
  }
}

// Sums the products of all parts.
template <class P>
__device__ void SumParts(Ring& ring, uint32_t slots, int inner, int parts, int rank,
                         WarpgroupSums<P::kColumns>& sums) {
  using A = typename P::A;
  using B = typename P::B;
  const uint32_t group = threadIdx.x / kWarpgroupThreads;
  RingPlace place;
  int before = 0;  // the slot of the part before
#pragma unroll 1
  for (int part = 0; part < parts; ++part) {
    ring.full[place.slot].Wait(place.odd);
    const uint32_t at = slots + place.slot * P::kSlotBytes;
    const uint64_t a = FactorAt<A::kChunk, A::kAcross>(at + group * P::kGroupBytes, A::kChunkBytes);
    const uint64_t b = FactorAt<B::kChunk, B::kAcross>(at + P::kBytesA, B::kChunkBytes);
    const bool is_whole = inner - part * kInner > kInner / 2;
    is_whole ? MultiplySlot<P, kInner>(a, b, part == 0, sums)
             : MultiplySlot<P, kInner / 2>(a, b, part == 0, sums);
    WaitForProductsBut<1>();
    // Both blocks fill the slot of the part before again when all who read it have arrived.
    if (part > 0 && part - 1 + kPairSlots < parts && threadIdx.x % 32 == 0) {
      ring.empty[before].Arrive();
      ring.empty[before].ArriveAt(rank ^ 1);
    }
    __syncwarp();
    before = place.slot;
    place.Next();
  }
  WaitForProductsBut<0>();
}
#endif

// Blocks: x over tiles of rows, the blocks of a cluster first; y over tiles of columns.
template <class P>
__global__ void __launch_bounds__(kPairBound)
    PairMatrixProductKernel(int inner, const __grid_constant__ CUtensorMap a,
                            const __grid_constant__ CUtensorMap b,
                            const __grid_constant__ ShortTarget target) {
#if THIMBLE_HAS_WARPGROUPS
  extern __shared__ float shared[];
  __shared__ Ring ring;
  __shared__ float bias[P::kColumns];
  if (threadIdx.x == kThreads) {
    PrefetchMap(a);
    PrefetchMap(b);
  }
  ring.Make(kPairBlocks);
  SyncCluster();  // copies and arrivals of the other block need this one's handovers
  float* tile = AlignedShared(shared);
  const int rank = static_cast<int>(blockIdx.x) % kPairBlocks;
  const int first_row = static_cast<int>(blockIdx.x) * kRows;
  const int first_column = static_cast<int>(blockIdx.y) * P::kColumns;
  const int parts = (inner + kInner - 1) / kInner;
  const bool multiplies = threadIdx.x < kThreads;
  WarpgroupSums<P::kColumns> sums;
  WaitForKernelsBefore(NextKernels::kLater);
  if (multiplies) {
    LoadBias<P::kColumns>(target, first_column, bias);
    SumParts<P>(ring, SharedAddress(tile), inner, parts, rank, sums);
  } else if (threadIdx.x == kThreads) {
    CopyParts<P>(ring, SharedAddress(tile), parts, rank, first_row, first_column, a, b);
  }
  __syncwarp();
  LetNextKernelsBegin();
  ArriveInCluster();
  __syncthreads();  // no slot is read any more
  if (multiplies) {
    StoreShortTile<typename P::Number, P::kColumns>(
        target, first_row, first_column, bias, reinterpret_cast<typename P::Number*>(tile), sums);
  }
  WaitForCluster();  // until here the other block hands slots back to this one
#endif
}

dim3 PairBlocks(const MatrixProduct& product) {
  return {static_cast<unsigned>(kPairBlocks * Quotient(product.rows, kPairBlocks * kRows)),
          static_cast<unsigned>(Quotient(product.columns, kPairColumns))};
}

template <class P>
bool LaunchPairs(cudaStream_t stream, const MatrixProduct& product) {
  const auto kernel = PairMatrixProductKernel<P>;
  constexpr int kBytes = kPairSlots * P::kSlotBytes + kChunkAlignment;
  static const bool is_there = Prepare(kernel, kBytes, kPairThreads);
  if (!is_there) return false;
  const CUtensorMap a = MapOf(product.a, product.rows, product.inner, kRows);
  const CUtensorMap b = MapOf(product.b, product.columns, product.inner, kPairHalf);
  LaunchClusters(stream, PairBlocks(product), kPairThreads, kBytes, kPairBlocks, kernel,
                 static_cast<int>(product.inner), a, b, ShortTargetOf(product));
  return true;
}

template <class Number>
bool LaunchPairForm(cudaStream_t stream, const MatrixProduct& product) {
  return product.b.lines_across ? LaunchPairs<PairProduct<Number, true>>(stream, product)
                                : LaunchPairs<PairProduct<Number, false>>(stream, product);
}

}  // namespace
}  // namespace wide

bool LaunchPairMatrixProduct(cudaStream_t stream, const MatrixProduct& product, Math math) {
  constexpr unsigned kMultiprocessors = 132;  // of an H200
  if (product.a.lines_across || !wide::IsShortTarget(product)) return false;
  const dim3 blocks = wide::PairBlocks(product);
  if (blocks.x * blocks.y > kMultiprocessors) return false;
  return math == Math::kF16 ? wide::LaunchPairForm<F16>(stream, product)
                            : wide::LaunchPairForm<BF16>(stream, product);
}

}  // namespace thimble
