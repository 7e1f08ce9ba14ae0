#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/device/cuda/check.h"
#include "thimble/ops/accumulate/accumulate_device.h"

namespace thimble {
namespace {

__device__ bool IsAligned16(const AccumulateTensor& tensor) {
  const auto bits = reinterpret_cast<uintptr_t>(tensor.sum) |
                    reinterpret_cast<uintptr_t>(tensor.x) |
                    reinterpret_cast<uintptr_t>(tensor.next);
  return bits % 16 == 0;
}

__device__ void AddFour(const AccumulateTensor& tensor, bool first, int i) {
  float4 next = *reinterpret_cast<const float4*>(tensor.x + i);
  if (!first) {
    const float4 sum = *reinterpret_cast<const float4*>(tensor.sum + i);
    next = make_float4(sum.x + next.x, sum.y + next.y, sum.z + next.z, sum.w + next.w);
  }
  *reinterpret_cast<float4*>(tensor.next + i) = next;
}

__global__ void __launch_bounds__(kAccumulateThreads)
    AccumulateKernel(const __grid_constant__ AccumulateTensors tensors) {
  const int block = static_cast<int>(blockIdx.x);
  const AccumulateTensor tensor = tensors.tensors[tensors.Find(block)];
  const bool first = *tensors.seen == 0;
  const int first_element = (block - tensor.first_block) * kAccumulateBlockElements;
  const int i = first_element + 4 * static_cast<int>(threadIdx.x);
  if (i + 4 <= tensor.elements && IsAligned16(tensor)) return AddFour(tensor, first, i);
  for (int k = i; k < min(i + 4, tensor.elements); ++k) {
    tensor.next[k] = first ? tensor.x[k] : tensor.sum[k] + tensor.x[k];
  }
}

}  // namespace

void LaunchAccumulate(cudaStream_t stream, const AccumulateTensors& tensors) {
  if (tensors.num_blocks == 0) return;
  AccumulateKernel<<<static_cast<unsigned>(tensors.num_blocks), kAccumulateThreads, 0, stream>>>(
      tensors);
  THIMBLE_CUDA_LAUNCHED();
}

}  // namespace thimble
