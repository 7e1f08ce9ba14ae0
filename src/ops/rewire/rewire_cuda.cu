#include <cuda_runtime.h>

#include <algorithm>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/device/cuda/packed.cuh"
#include "thimble/ops/rewire/moved_pools.h"
#include "thimble/ops/rewire/rewire.h"
#include "thimble/ops/rewire/rewire_rule.h"
#include "thimble/ops/rewire/rewire_scratch.h"
#include "thimble/ops/rewire/select_keys.cuh"

namespace thimble {
namespace {

// One rewiring; all addresses are on the device.
struct CudaRewiring {
  PatternChange change;  // the new pattern is in scratch
  uint32_t* new_words = nullptr;
  RewireTensor* tensors = nullptr;
  int64_t num_tensors = 0;
  ConstNumbers weights;
  const float* threshold = nullptr;
  const int32_t* update = nullptr;
  float* next_threshold = nullptr;
  int32_t* moved = nullptr;
  bool is_set = false;
  double fraction = 0;
  int64_t quota = 0;
  int64_t seed = 0;

  __device__ RewireDraw draw() const { return MakeRewireDraw(seed, *update); }
  __device__ WordRange words() const { return {0, change.blocks * kPatternBlockWords}; }
  __device__ WordRange words(const RewireTensor& tensor) const {
    const int64_t end = tensor.first_block + PatternBlocks(tensor.elements);
    return {tensor.first_block * kPatternBlockWords, end * kPatternBlockWords};
  }
};

// ---- Keys of positions, for select_keys.cuh

// Of active weights, by which they are kept.
struct ActiveKeys {
  const CudaRewiring& rewiring;

  template <class Body>
  __device__ void Visit(int64_t word, const Body& body) const {
    const PatternChange& change = rewiring.change;
    const PackedPlace old{change.old_words, change.old_starts(), change.blocks};
    const PackedGroup group = FindGroup<kPatternWordBits>(old, word * kPatternWordBits);
    AnyPointer<const void> weight = AnyPointer<const void>(rewiring.weights) + group.place;
    for (uint32_t rest = group.active; rest != 0; rest &= rest - 1) {
      body(rest & (~rest + 1), KeepKey(LoadNumber(weight)));
      weight = weight + 1;
    }
  }
};

// The same of those that are not in the new pattern.
struct DroppedKeys {
  const CudaRewiring& rewiring;

  template <class Body>
  __device__ void Visit(int64_t word, const Body& body) const {
    const uint32_t kept = rewiring.new_words[word];
    ActiveKeys{rewiring}.Visit(word, [&](uint32_t bit, uint32_t key) {
      if ((kept & bit) == 0) body(bit, key);
    });
  }
};

// The random ones of positions that were inactive.
struct CandidateKeys {
  const CudaRewiring& rewiring;
  const RewireTensor& tensor;
  RewireDraw draw;

  template <class Body>
  __device__ void Visit(int64_t word, const Body& body) const {
    constexpr int kDraws = kPatternWordBits / RewireDraw::kKeysPerDraw;
    const int64_t first = (word - tensor.first_block * kPatternBlockWords) * kPatternWordBits;
    uint32_t candidates =
        ~rewiring.change.old_words[word] & PatternElementBits(tensor.elements - first);
#pragma unroll 1
    for (int i = 0; i < kDraws; ++i, candidates >>= RewireDraw::kKeysPerDraw) {
      const auto keys =
          Philox4x32(draw.source.key(), draw.KeyCounter(static_cast<uint32_t>(word * kDraws + i)));
#pragma unroll
      for (int k = 0; k < RewireDraw::kKeysPerDraw; ++k) {
        if ((candidates >> k & 1) != 0) body(1U << (RewireDraw::kKeysPerDraw * i + k), keys[k]);
      }
    }
  }
};

// ---- Kernels. Those of single tensors have a block for each.

// Passed as a kernel argument, within the 4 KiB that every GPU supports.
constexpr int kMostListedTensors = 256;
struct ListedTensors {
  int64_t first = 0;  // index of the first of them
  int32_t first_block[kMostListedTensors];
  int32_t elements[kMostListedTensors];
};
static_assert(sizeof(ListedTensors) + sizeof(CudaRewiring) <= 4096);

// The weights of a tensor to keep; for SET also how many grow.
__device__ void KeepWeights(const CudaRewiring& rewiring, RewireTensor& tensor) {
  const ActiveKeys keys{rewiring};
  const WordRange words = rewiring.words(tensor);
  const auto keep = [&](const SmallestKeys& chosen) {
    tensor.kept = SetChosenBits(keys, words, chosen, rewiring.new_words);
  };
  const auto keep_largest = [&](int64_t count) {
    keep(FindSmallestInBlock(keys, words, static_cast<uint32_t>(count)));
  };
  if (rewiring.is_set) {
    tensor.grown = DropsOfSet(rewiring.fraction, tensor);
    return keep_largest(tensor.active - tensor.grown);
  }
  const uint32_t last_key = KeepKey(ClampThreshold(*rewiring.threshold));
  keep({uint64_t{last_key} + 1, 0});  // the threshold and what is larger
  if (tensor.kept == 0) keep_largest(1);
}

__global__ void __launch_bounds__(kSelectThreads)
    KeepWeightsKernel(const __grid_constant__ CudaRewiring rewiring,
                      const __grid_constant__ ListedTensors list) {
  WaitForKernelsBefore();
  const uint32_t* starts = rewiring.change.old_starts();
  RewireTensor tensor{.first_block = list.first_block[blockIdx.x],
                      .elements = list.elements[blockIdx.x]};
  tensor.active = int64_t{starts[tensor.first_block + PatternBlocks(tensor.elements)]} -
                  int64_t{starts[tensor.first_block]};
  const WordRange words = rewiring.words(tensor);
  for (int64_t word = words.begin + threadIdx.x; word < words.end; word += kSelectThreads) {
    rewiring.new_words[word] = 0;
  }
  __syncthreads();
  KeepWeights(rewiring, tensor);
  if (threadIdx.x == 0) rewiring.tensors[list.first + blockIdx.x] = tensor;
}

// Keeps the largest of the weights to be dropped, of all tensors.
__device__ void KeepMore(const CudaRewiring& rewiring, uint32_t count) {
  const DroppedKeys keys{rewiring};
  const WordRange words = rewiring.words();
  SetChosenBits(keys, words, FindSmallestInBlock(keys, words, count), rewiring.new_words);
  __syncthreads();
  for (int64_t i = 0; i < rewiring.num_tensors; ++i) {
    const WordRange own = rewiring.words(rewiring.tensors[i]);
    uint32_t kept = 0;
    for (int64_t word = own.begin + threadIdx.x; word < own.end; word += kSelectThreads) {
      kept += __popc(rewiring.new_words[word]);
    }
    kept = SumBlock(kept).all;
    if (threadIdx.x == 0) rewiring.tensors[i].kept = kept;
  }
}

// One block: how many weights each tensor grows, and the single numbers.
__global__ void __launch_bounds__(kSelectThreads)
    ShareOutKernel(const __grid_constant__ CudaRewiring rewiring) {
  WaitForKernelsBefore();
  uint32_t dropped = 0;
  uint32_t room = 0;
  for (int64_t i = threadIdx.x; i < rewiring.num_tensors; i += kSelectThreads) {
    dropped += static_cast<uint32_t>(rewiring.tensors[i].dropped());
    room += static_cast<uint32_t>(rewiring.tensors[i].room());
  }
  dropped = SumBlock(dropped).all;
  room = SumBlock(room).all;
  const uint32_t moved = min(dropped, room);  // SET drops no more than can grow
  if (dropped > room) KeepMore(rewiring, dropped - room);
  if (threadIdx.x != 0) return;
  const float threshold = ClampThreshold(*rewiring.threshold);
  *rewiring.next_threshold =
      rewiring.is_set ? threshold : NextThreshold(threshold, dropped, rewiring.quota);
  *rewiring.moved = static_cast<int32_t>(moved);
  if (rewiring.is_set) return;
  ShareOut({rewiring.tensors, static_cast<size_t>(rewiring.num_tensors)}, moved, rewiring.draw());
}

// Writes the starts of a tensor's blocks, and of the pattern's end.
__device__ void WriteStarts(const CudaRewiring& rewiring, int64_t index) {
  uint32_t start = 0;
  for (int64_t i = threadIdx.x; i < index; i += kSelectThreads) {
    start += static_cast<uint32_t>(rewiring.tensors[i].kept + rewiring.tensors[i].grown);
  }
  start = SumBlock(start).all;
  uint32_t* starts = rewiring.new_words + rewiring.words().end;
  const RewireTensor& tensor = rewiring.tensors[index];
  const int64_t end = tensor.first_block + PatternBlocks(tensor.elements);
  for (int64_t first = tensor.first_block; first < end; first += kSelectThreads) {
    const int64_t block = first + threadIdx.x;
    uint32_t count = 0;
    for (int64_t i = 0; block < end && i < kPatternBlockWords; ++i) {
      count += __popc(rewiring.new_words[block * kPatternBlockWords + i]);
    }
    const BlockSum sum = SumBlock(count);
    if (block < end) starts[block] = start + sum.before;
    start += sum.all;
  }
  if (threadIdx.x == 0 && index + 1 == rewiring.num_tensors) starts[end] = start;
}

__global__ void __launch_bounds__(kSelectThreads)
    GrowWeightsKernel(const __grid_constant__ CudaRewiring rewiring) {
  WaitForKernelsBefore();
  const RewireTensor tensor = rewiring.tensors[blockIdx.x];
  if (tensor.grown > 0) {
    const CandidateKeys keys{rewiring, tensor, rewiring.draw()};
    const WordRange words = rewiring.words(tensor);
    const auto wanted = static_cast<uint32_t>(tensor.grown);
    SetChosenBits(keys, words, FindSmallestInBlock(keys, words, wanted), rewiring.new_words);
    __syncthreads();
  }
  WriteStarts(rewiring, blockIdx.x);
}

// ---- Launches

CudaRewiring RewiringOf(const KernelCall& call, const RewireScratch& scratch) {
  const RewirePorts ports = RewirePortsOf(call.inputs.size());
  CudaRewiring rewiring;
  rewiring.new_words = reinterpret_cast<uint32_t*>(call.scratch.data() + scratch.pattern_begin);
  rewiring.change = {static_cast<const uint32_t*>(call.inputs[0].data), rewiring.new_words,
                     BlocksOfPattern(call.in_shape(0).elements())};
  rewiring.tensors = reinterpret_cast<RewireTensor*>(call.scratch.data());
  rewiring.num_tensors = static_cast<int64_t>(call.attributes.Ints("tensors").size());
  rewiring.weights = ConstNumbersOf(call.inputs[1]);
  rewiring.threshold = call.In<float>(ports.threshold());
  rewiring.update = call.In<int32_t>(ports.update());
  rewiring.next_threshold = call.Out<float>(ports.threshold());
  rewiring.moved = call.Out<int32_t>(ports.moved());
  rewiring.is_set = call.attributes.Int("method") == kRewireSet;
  rewiring.fraction = call.attributes.Float("fraction");
  rewiring.quota = call.attributes.Int("quota");
  rewiring.seed = call.attributes.Int("seed");
  return rewiring;
}

void LaunchKeepWeights(const KernelCall& call, const CudaRewiring& rewiring) {
  const std::vector<int64_t>& elements = call.attributes.Ints("tensors");
  ListedTensors list;
  int count = 0;
  int64_t block = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    list.first_block[count] = static_cast<int32_t>(block);
    list.elements[count++] = static_cast<int32_t>(elements[i]);
    block += PatternBlocks(elements[i]);
    if (count < kMostListedTensors && i + 1 < elements.size()) continue;
    KeepWeightsKernel<<<static_cast<unsigned>(count), kSelectThreads, 0, call.stream>>>(rewiring,
                                                                                        list);
    THIMBLE_CUDA_LAUNCHED();
    list.first += count;
    count = 0;
  }
}

void CopyOnDevice(const KernelCall& call, const void* from, const TensorView& to) {
  THIMBLE_CUDA(
      cudaMemcpyAsync(to.data, from, to.size_bytes(), cudaMemcpyDeviceToDevice, call.stream));
}

}  // namespace

void RewireCuda::Run(const KernelCall& call) {
  const size_t pools = RewirePortsOf(call.inputs.size()).pools;
  size_t pool_bytes = 0;
  for (size_t pool = 1; pool <= pools; ++pool) {
    pool_bytes = std::max(pool_bytes, call.inputs[pool].size_bytes());
  }
  const size_t num_tensors = call.attributes.Ints("tensors").size();
  const RewireScratch scratch =
      PlanRewireScratch(num_tensors, pool_bytes, static_cast<size_t>(call.in_shape(0).elements()));
  const CudaRewiring rewiring = RewiringOf(call, scratch);
  LaunchKeepWeights(call, rewiring);
  ShareOutKernel<<<1, kSelectThreads, 0, call.stream>>>(rewiring);
  THIMBLE_CUDA_LAUNCHED();
  GrowWeightsKernel<<<static_cast<unsigned>(num_tensors), kSelectThreads, 0, call.stream>>>(
      rewiring);
  THIMBLE_CUDA_LAUNCHED();
  // Outputs may have the addresses of inputs: each is made in scratch. The pattern, by which pools
  // are read, comes last.
  std::byte* new_pool = call.scratch.data() + scratch.pool_begin;
  for (size_t pool = 1; pool <= pools; ++pool) {
    MovePoolOnCuda(call.stream, rewiring.change, {rewiring.tensors, num_tensors},
                   call.in_shape(1).elements(), call.inputs[pool], new_pool);
    CopyOnDevice(call, new_pool, call.outputs[pool]);
  }
  CopyOnDevice(call, rewiring.new_words, call.outputs[0]);
}

}  // namespace thimble
