#include <cuda_runtime.h>

#include <algorithm>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/ops/loss_scale/loss_scale.h"
#include "thimble/tensor/packed.h"

namespace thimble {
namespace {

constexpr int kCheckThreads = 256;
constexpr int64_t kCheckElements = 16 * kCheckThreads;

struct CheckedGradient {
  const void* data = nullptr;
  int64_t elements = 0;
  int64_t first_block = 0;
  const uint32_t* starts = nullptr;  // of a packed gradient, on the device
  DType type = DType::kF32;
};

// Passed as a kernel argument, within the 4 KiB that every GPU supports.
constexpr int kMaxGradients = 96;
struct CheckedGradients {
  CheckedGradient gradients[kMaxGradients];
  int num_gradients = 0;
  int64_t num_blocks = 0;
};
static_assert(sizeof(CheckedGradients) <= 4096);

int64_t CheckBlocks(int64_t elements) { return (elements + kCheckElements - 1) / kCheckElements; }

// Elements [begin, end), or those of a packed gradient's numbers.
template <class Stored>
__device__ double SquaresOf(const CheckedGradient& gradient, int64_t begin, int64_t end) {
  const auto* numbers = static_cast<const Stored*>(gradient.data);
  if (gradient.starts != nullptr) {
    const PackedPlace place{nullptr, gradient.starts, PatternBlocks(gradient.elements)};
    numbers += place.begin();
    end = min(end, static_cast<int64_t>(place.count()));
  }
  double sum = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += kCheckThreads) {
    const double number = LoadNumber(numbers + i);
    sum += number * number;
  }
  return sum;
}

// The sum over the threads of a block, in the first thread.
__device__ double SumOverThreads(double sum) {
  __shared__ double sums[kCheckThreads / 32];
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(0xFFFFFFFFU, sum, distance);
  }
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  double total = 0;
  for (const double part : sums) total += part;
  return total;
}

// One sum for each block.
__global__ void __launch_bounds__(kCheckThreads)
    SumSquaresKernel(const __grid_constant__ CheckedGradients list, double* sums) {
  WaitForKernelsBefore();
  const int64_t block = blockIdx.x;
  int index = 0;
  while (index + 1 < list.num_gradients && list.gradients[index + 1].first_block <= block) ++index;
  const CheckedGradient& gradient = list.gradients[index];
  const int64_t begin = (block - gradient.first_block) * kCheckElements;
  const int64_t end = min(gradient.elements, begin + kCheckElements);
  double sum = 0;
  switch (gradient.type) {
    case DType::kF16:
      sum = SquaresOf<F16>(gradient, begin, end);
      break;
    case DType::kBF16:
      sum = SquaresOf<BF16>(gradient, begin, end);
      break;
    default:
      sum = SquaresOf<float>(gradient, begin, end);
  }
  sum = SumOverThreads(sum);
  if (threadIdx.x == 0) sums[block] = sum;
}

// A single block adds the sums, always in the same order.
__global__ void __launch_bounds__(kCheckThreads)
    FindFactorKernel(const double* sums, int64_t num_sums, double clip, const float* state,
                     float* factor, float* next_state) {
  WaitForKernelsBefore();
  double squares = 0;
  for (int64_t i = threadIdx.x; i < num_sums; i += kCheckThreads) squares += sums[i];
  squares = SumOverThreads(squares);
  if (threadIdx.x != 0) return;
  const double found = GradientFactor(squares, state[kScale], clip);
  *factor = static_cast<float>(found);
  for (int entry = 0; entry < kNumScaleEntries; ++entry) {
    next_state[entry] = state[entry] + (entry == kNotFinite && found == 0 ? 1.0F : 0.0F);
  }
}

__global__ void ScaleLossKernel(const float* weight, const float* state, float* y) {
  WaitForKernelsBefore();
  *y = *weight * state[kScale];
}

__global__ void AdjustKernel(LossScaleRule rule, const float* state, float* next) {
  WaitForKernelsBefore();
  rule.Adjust(state, next);
}

}  // namespace

size_t CheckGradientsCuda::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  int64_t blocks = 0;
  for (const Shape& gradient : call.inputs.subspan(1)) blocks += CheckBlocks(gradient.elements());
  return static_cast<size_t>(blocks) * sizeof(double);
}

void CheckGradientsCuda::Run(const KernelCall& call) {
  auto* sums = reinterpret_cast<double*>(call.scratch.data());
  CheckedGradients list;
  int64_t num_sums = 0;
  const auto launch = [&] {
    if (list.num_blocks == 0) return;
    SumSquaresKernel<<<static_cast<unsigned>(list.num_blocks), kCheckThreads, 0, call.stream>>>(
        list, sums + num_sums);
    THIMBLE_CUDA_LAUNCHED();
    num_sums += list.num_blocks;
    list.num_gradients = 0;
    list.num_blocks = 0;
  };
  for (const TensorView& gradient : call.inputs.subspan(1)) {
    const int64_t elements = gradient.shape.elements();
    if (elements == 0) continue;
    if (list.num_gradients == kMaxGradients) launch();
    list.gradients[list.num_gradients++] = {gradient.data, elements, list.num_blocks,
                                            gradient.packed.starts, gradient.dtype};
    list.num_blocks += CheckBlocks(elements);
  }
  launch();
  FindFactorKernel<<<1, kCheckThreads, 0, call.stream>>>(
      sums, num_sums, call.attributes.Float("clip"), call.In<float>(0), call.Out<float>(0),
      call.Out<float>(1));
  THIMBLE_CUDA_LAUNCHED();
}

void ScaleLossCuda::Run(const KernelCall& call) {
  ScaleLossKernel<<<1, 1, 0, call.stream>>>(call.In<float>(0), call.In<float>(1),
                                            call.Out<float>(0));
  THIMBLE_CUDA_LAUNCHED();
}

void AdjustLossScaleCuda::Run(const KernelCall& call) {
  AdjustKernel<<<1, 1, 0, call.stream>>>(RuleOf(call.attributes), call.In<float>(0),
                                         call.Out<float>(0));
  THIMBLE_CUDA_LAUNCHED();
}

}  // namespace thimble
