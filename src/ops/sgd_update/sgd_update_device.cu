#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/device/cuda/check.h"
#include "thimble/ops/sgd_update/sgd_update_device.h"

namespace thimble {
namespace {

template <bool kMomentum>
__device__ void UpdateElement(const SgdSettings& settings, float rate, float gradient,
                              float& weight, float& momentum) {
  const float slope = fmaf(settings.weight_decay, weight, gradient);
  float step = slope;
  if constexpr (kMomentum) {
    momentum = fmaf(settings.momentum, momentum, slope);
    step = settings.nesterov ? fmaf(settings.momentum, momentum, slope) : momentum;
  }
  weight = fmaf(-rate, step, weight);
}

template <bool kMomentum>
__device__ void UpdateOne(const SgdSettings& settings, float rate, const SgdTensor& tensor, int i) {
  float weight = tensor.weight[i];
  float momentum = kMomentum ? tensor.momentum[i] : 0.0F;
  UpdateElement<kMomentum>(settings, rate, tensor.gradient[i], weight, momentum);
  tensor.next_weight[i] = weight;
  if constexpr (kMomentum) tensor.next_momentum[i] = momentum;
}

template <bool kMomentum>
__device__ void UpdateFour(const SgdSettings& settings, float rate, const SgdTensor& tensor,
                           int i) {
  float4 weight = *reinterpret_cast<const float4*>(tensor.weight + i);
  const float4 gradient = *reinterpret_cast<const float4*>(tensor.gradient + i);
  float4 momentum = make_float4(0, 0, 0, 0);
  if constexpr (kMomentum) momentum = *reinterpret_cast<const float4*>(tensor.momentum + i);
  UpdateElement<kMomentum>(settings, rate, gradient.x, weight.x, momentum.x);
  UpdateElement<kMomentum>(settings, rate, gradient.y, weight.y, momentum.y);
  UpdateElement<kMomentum>(settings, rate, gradient.z, weight.z, momentum.z);
  UpdateElement<kMomentum>(settings, rate, gradient.w, weight.w, momentum.w);
  *reinterpret_cast<float4*>(tensor.next_weight + i) = weight;
  if constexpr (kMomentum) *reinterpret_cast<float4*>(tensor.next_momentum + i) = momentum;
}

// Whether four elements at once can be read and written. A missing array is no obstacle.
__device__ bool IsAligned16(const SgdTensor& tensor) {
  const auto bits = reinterpret_cast<uintptr_t>(tensor.weight) |
                    reinterpret_cast<uintptr_t>(tensor.gradient) |
                    reinterpret_cast<uintptr_t>(tensor.momentum) |
                    reinterpret_cast<uintptr_t>(tensor.next_weight) |
                    reinterpret_cast<uintptr_t>(tensor.next_momentum);
  return bits % 16 == 0;
}

template <bool kMomentum>
__global__ void __launch_bounds__(kSgdThreads)
    SgdUpdateKernel(const __grid_constant__ SgdTensors tensors) {
  const int block = static_cast<int>(blockIdx.x);
  const SgdTensor tensor = tensors.tensors[tensors.Find(block)];
  const float rate = *tensors.settings.learning_rate;
  const int first = (block - tensor.first_block) * kSgdBlockElements;
  const int i = first + 4 * static_cast<int>(threadIdx.x);
  if (i + 4 <= tensor.elements && IsAligned16(tensor)) {
    UpdateFour<kMomentum>(tensors.settings, rate, tensor, i);
    return;
  }
  for (int k = i; k < min(i + 4, tensor.elements); ++k) {
    UpdateOne<kMomentum>(tensors.settings, rate, tensor, k);
  }
}

template <bool kMomentum>
void Launch(cudaStream_t stream, const SgdTensors& tensors) {
  if (tensors.num_blocks == 0) return;
  SgdUpdateKernel<kMomentum>
      <<<static_cast<unsigned>(tensors.num_blocks), kSgdThreads, 0, stream>>>(tensors);
  THIMBLE_CUDA_LAUNCHED();
}

}  // namespace

void LaunchSgdUpdate(cudaStream_t stream, const SgdTensors& tensors) {
  Launch<true>(stream, tensors);
}

void LaunchSgdUpdatePlain(cudaStream_t stream, const SgdTensors& tensors) {
  Launch<false>(stream, tensors);
}

}  // namespace thimble
