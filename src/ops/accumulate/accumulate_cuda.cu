#include <cuda_runtime.h>

#include <algorithm>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/ops/accumulate/accumulate.h"
#include "thimble/ops/accumulate/accumulate_number.cuh"
#include "thimble/ops/accumulate/accumulate_tensors.h"
#include "thimble/tensor/packed.h"

namespace thimble {
namespace {

__device__ bool IsAligned16(const AccumulateTensor& tensor) {
  const auto bits = reinterpret_cast<uintptr_t>(tensor.sum.data) |
                    reinterpret_cast<uintptr_t>(tensor.x.data) |
                    reinterpret_cast<uintptr_t>(tensor.next.data);
  return bits % 16 == 0;
}

template <class Storage>
__device__ void AccumulateFour(const AccumulateTensor& tensor, bool first, int i) {
  const auto x = LoadPack<4>(As<Storage>(tensor.x) + i);
  float next[4] = {x[0], x[1], x[2], x[3]};
  if (!first) {
    const auto sum = LoadPack<4>(As<Storage>(tensor.sum) + i);
#pragma unroll
    for (int k = 0; k < 4; ++k) next[k] = sum[k] + next[k];
  }
  StorePack(next, As<Storage>(tensor.next) + i);
}

// All threads of a block take the same way.
__device__ void AccumulateFourOfAnyType(const AccumulateTensor& tensor, bool first, int i) {
  if (tensor.all_have(DType::kF32)) return AccumulateFour<float>(tensor, first, i);
  if (tensor.all_have(DType::kF16)) return AccumulateFour<F16>(tensor, first, i);
  if (tensor.all_have(DType::kBF16)) return AccumulateFour<BF16>(tensor, first, i);
  AccumulateFour<AnyNumber>(tensor, first, i);
}

// The arrays of the elements that are stored.
__device__ AccumulateTensor StoredArrays(AccumulateTensor tensor) {
  if (tensor.starts == nullptr) return tensor;
  const PackedPlace place{nullptr, tensor.starts, tensor.blocks};
  const auto before = static_cast<int64_t>(place.begin());
  tensor.sum = As<AnyNumber>(tensor.sum) + before;
  tensor.x = As<AnyNumber>(tensor.x) + before;
  tensor.next = As<AnyNumber>(tensor.next) + before;
  const int64_t rest = static_cast<int64_t>(place.count()) - tensor.begin;
  tensor.elements = static_cast<int>(min(int64_t{tensor.elements}, max(int64_t{0}, rest)));
  return tensor;
}

__global__ void __launch_bounds__(kAccumulateThreads)
    AccumulateKernel(const __grid_constant__ AccumulateTensors tensors) {
  WaitForKernelsBefore();
  const int block = static_cast<int>(blockIdx.x);
  const AccumulateTensor tensor = StoredArrays(tensors.tensors[tensors.Find(block)]);
  const bool first = *tensors.seen == 0;
  const int first_element = (block - tensor.first_block) * kAccumulateBlockElements;
  const int i = first_element + 4 * static_cast<int>(threadIdx.x);
  if (i + 4 <= tensor.elements && IsAligned16(tensor)) {
    return AccumulateFourOfAnyType(tensor, first, i);
  }
  for (int k = i; k < min(i + 4, tensor.elements); ++k) {
    const float x = LoadNumber(As<AnyNumber>(tensor.x) + k);
    AccumulateNumber(tensor.sum, first, x, k, tensor.next);
  }
}

// A tensor with more elements is split, because elements are counted in 32 bits.
constexpr int64_t kMaxAccumulateElements = int64_t{1} << 30;

AccumulateTensor PieceOf(const KernelCall& call, int64_t begin, int64_t end) {
  AccumulateTensor tensor;
  tensor.sum = ConstNumbersOf(call.inputs[0]) + begin;
  tensor.x = ConstNumbersOf(call.inputs[1]) + begin;
  tensor.next = NumbersOf(call.outputs[0]) + begin;
  tensor.elements = static_cast<int>(end - begin);
  tensor.starts = call.outputs[0].packed.starts;
  tensor.blocks = static_cast<int>(call.outputs[0].packed.blocks);
  tensor.begin = begin;
  return tensor;
}

// Launches the work for the tensors collected so far and clears the list.
void LaunchAccumulate(cudaStream_t stream, AccumulateTensors& tensors) {
  if (tensors.num_blocks == 0) return;
  AccumulateKernel<<<static_cast<unsigned>(tensors.num_blocks), kAccumulateThreads, 0, stream>>>(
      tensors);
  THIMBLE_CUDA_LAUNCHED();
  tensors.Clear();
}

}  // namespace

void AccumulateCuda::Run(const KernelCall& call) { RunGroup({&call, 1}); }

void AccumulateCuda::RunGroup(std::span<const KernelCall> calls) {
  AccumulateTensors tensors;
  for (const KernelCall& call : calls) {
    // One launch reads a single `seen`; all calls of a plan have the same one.
    if (tensors.seen != call.In<int32_t>(2)) LaunchAccumulate(call.stream, tensors);
    tensors.seen = call.In<int32_t>(2);
    const int64_t elements = call.out_shape(0).elements();
    for (int64_t begin = 0; begin < elements; begin += kMaxAccumulateElements) {
      if (tensors.full()) LaunchAccumulate(call.stream, tensors);
      tensors.Add(PieceOf(call, begin, std::min(elements, begin + kMaxAccumulateElements)));
    }
  }
  LaunchAccumulate(calls.front().stream, tensors);
}

}  // namespace thimble
