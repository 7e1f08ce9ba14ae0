#include <cuda_runtime.h>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/elements.cuh"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/packed.cuh"
#include "thimble/ops/rewire/moved_pools.h"
#include "thimble/tensor/short_numbers.h"

namespace thimble {
namespace {

// As FindGroup<1>, for the new pattern: the kernel before, which may still run when this one
// begins, writes it, so it must not be read as constant data.
__device__ PackedGroup FindInNew(const PackedPlace& packed, int64_t element) {
  const int64_t block = element / kPatternBlock;
  const int64_t word = element / kPatternWordBits;
  uint32_t place = packed.starts[block];
  for (int64_t w = block * kPatternBlockWords; w < word; ++w) place += __popc(packed.bits[w]);
  const uint32_t bits = packed.bits[word];
  const int bit = static_cast<int>(element % kPatternWordBits);
  return {bits >> bit & 1, place + __popc(bits & ((1U << bit) - 1))};
}

// Called for each position, then for each number of the pool behind the active ones. Numbers of 16
// or 32 bits, as integers: their bits stay.
template <class Stored>
struct MoveNumber {
  PackedPlace before;
  PackedPlace after;
  int64_t positions;
  int64_t active;
  const Stored* from;
  Stored* to;

  __device__ void operator()(int64_t i) const {
    if (i >= positions) {
      to[active + i - positions] = 0;
      return;
    }
    const PackedGroup next = FindInNew(after, i);
    if (next.active == 0) return;
    const PackedGroup old = FindGroup<1>(before, i);
    to[next.place] = old.active != 0 ? from[old.place] : Stored{0};
  }
};

template <class Stored>
void LaunchMoveNumbers(cudaStream_t stream, const PatternChange& change, int64_t active,
                       const TensorView& old_pool, std::byte* new_pool) {
  const int64_t positions = change.blocks * kPatternBlock;
  const MoveNumber<Stored> body{{change.old_words, change.old_starts(), change.blocks},
                                {change.new_words, change.new_starts(), change.blocks},
                                positions,
                                active,
                                static_cast<const Stored*>(old_pool.data),
                                reinterpret_cast<Stored*>(new_pool)};
  LaunchElements(stream, positions + old_pool.shape.elements() - active, body);
}

// ---- Numbers in 8 bits

constexpr int kMoveQ8Threads = static_cast<int>(kQ8BlockNumbers);

struct MovedQ8Pool {
  PatternChange change;
  const RewireTensor* tensors = nullptr;
  int64_t num_tensors = 0;
  const std::byte* from = nullptr;
  std::byte* to = nullptr;

  __device__ PackedPlace Place(const uint32_t* words, const uint32_t* starts,
                               int64_t tensor) const {
    const int64_t block = tensors[tensor].first_block;
    return {words + block * kPatternBlockWords, starts + block,
            PatternBlocks(tensors[tensor].elements), tensor};
  }
  __device__ PackedPlace Before(int64_t tensor) const {
    return Place(change.old_words, change.old_starts(), tensor);
  }
  __device__ PackedPlace After(int64_t tensor) const {
    return Place(change.new_words, change.new_starts(), tensor);
  }
};

// The last index in [0, count) for which is_before(index); it is for the first.
template <class IsBefore>
__device__ int64_t FindLast(int64_t count, const IsBefore& is_before) {
  int64_t first = 0;
  for (int64_t end = count; end - first > 1;) {
    const int64_t middle = (first + end) / 2;
    (is_before(middle) ? first : end) = middle;
  }
  return first;
}

// The active element that has this place in the pool.
__device__ int64_t ElementAt(const PackedPlace& packed, uint32_t place) {
  const int64_t block =
      FindLast(packed.blocks, [&](int64_t i) { return packed.starts[i] <= place; });
  int64_t word = block * kPatternBlockWords;
  uint32_t before = place - packed.starts[block];
  for (; before >= __popc(packed.bits[word]); ++word) before -= __popc(packed.bits[word]);
  uint32_t bits = packed.bits[word];
  for (; before > 0; --before) bits &= bits - 1;
  return word * kPatternWordBits + __ffs(static_cast<int>(bits)) - 1;
}

// 0 if the element was not active.
__device__ float NumberBefore(const MovedQ8Pool& pool, int64_t tensor, int64_t element) {
  const PackedPlace place = pool.Before(tensor);
  const PackedGroup group = FindGroup<1>(place, element);
  if (group.active == 0) return 0;
  const size_t index = group.place - place.begin();
  const std::byte* block =
      pool.from + place.OffsetBytes(DType::kQ8) + index / kQ8BlockNumbers * kQ8BlockBytes;
  const auto* integers = reinterpret_cast<const signed char*>(block + sizeof(float));
  return static_cast<float>(integers[index % kQ8BlockNumbers]) *
         *reinterpret_cast<const float*>(block);
}

// The largest among the threads of a block.
__device__ uint32_t LargestOfThreads(uint32_t number) {
  __shared__ uint32_t largest[kMoveQ8Threads / 32];
  number = __reduce_max_sync(0xFFFFFFFFU, number);
  if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = number;
  __syncthreads();
  for (const uint32_t other : largest) number = max(number, other);
  return number;
}

// Encodes numbers of one block, one of each thread, to the nearest.
__device__ void StoreQ8Block(float number, std::byte* block) {
  const uint32_t magnitude = __float_as_uint(number) & 0x7FFFFFFFU;
  const float scale = Q8Scale(__uint_as_float(LargestOfThreads(magnitude)));
  const float level = rintf(number * Q8Inverse(scale));
  if (threadIdx.x == 0) *reinterpret_cast<float*>(block) = scale;
  reinterpret_cast<signed char*>(block + sizeof(float))[threadIdx.x] =
      static_cast<signed char>(fmaxf(fminf(level, 127.0F), -127.0F));
}

// One block of threads for each block of numbers. Those without a number become 0.
__global__ void __launch_bounds__(kMoveQ8Threads)
    MoveQ8Kernel(const __grid_constant__ MovedQ8Pool pool) {
  WaitForKernelsBefore();
  const size_t begin = size_t{blockIdx.x} * kQ8BlockBytes;
  const int64_t tensor = FindLast(
      pool.num_tensors, [&](int64_t i) { return pool.After(i).OffsetBytes(DType::kQ8) <= begin; });
  const PackedPlace place = pool.After(tensor);
  const size_t index =
      (begin - place.OffsetBytes(DType::kQ8)) / kQ8BlockBytes * kQ8BlockNumbers + threadIdx.x;
  float number = 0;
  if (index < place.count()) {
    const auto in_pool = static_cast<uint32_t>(place.begin() + index);
    number = NumberBefore(pool, tensor, ElementAt(place, in_pool));
  }
  StoreQ8Block(number, pool.to + begin);
}

}  // namespace

void MovePoolOnCuda(CUstream_st* stream, const PatternChange& change,
                    std::span<const RewireTensor> tensors, int64_t active,
                    const TensorView& old_pool, std::byte* new_pool) {
  if (old_pool.dtype == DType::kF32) {
    return LaunchMoveNumbers<uint32_t>(stream, change, active, old_pool, new_pool);
  }
  if (old_pool.dtype != DType::kQ8) {
    return LaunchMoveNumbers<uint16_t>(stream, change, active, old_pool, new_pool);
  }
  const MovedQ8Pool pool{change, tensors.data(), static_cast<int64_t>(tensors.size()),
                         static_cast<const std::byte*>(old_pool.data), new_pool};
  const size_t blocks = old_pool.size_bytes() / kQ8BlockBytes;
  MoveQ8Kernel<<<static_cast<unsigned>(blocks), kMoveQ8Threads, 0, stream>>>(pool);
  THIMBLE_CUDA_LAUNCHED();
}

}  // namespace thimble
