#include <cuda_runtime.h>

#include <algorithm>

#include "thimble/device/cuda/check.h"
#include "thimble/ops/sgd_update/sgd_tensors.h"
#include "thimble/ops/sgd_update/sgd_update.h"

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

// Whether four elements at once can be read and written. Null arrays are allowed.
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

// A tensor with more elements is split, because elements are counted in 32 bits.
constexpr int64_t kMaxSgdElements = int64_t{1} << 30;

template <bool kMomentum>
SgdSettings SgdSettingsOf(const KernelCall& call) {
  SgdSettings settings;
  settings.learning_rate = call.In<float>(kMomentum ? 3 : 2);
  settings.weight_decay = static_cast<float>(call.attributes.Float("weight_decay"));
  if constexpr (kMomentum) {
    settings.momentum = static_cast<float>(call.attributes.Float("momentum"));
    settings.nesterov = call.attributes.Int("nesterov") != 0;
  }
  return settings;
}

template <bool kMomentum>
SgdTensor SgdPiece(const KernelCall& call, int64_t begin, int64_t end) {
  SgdTensor tensor;
  tensor.weight = call.In<float>(0) + begin;
  tensor.gradient = call.In<float>(1) + begin;
  tensor.next_weight = call.Out<float>(0) + begin;
  if constexpr (kMomentum) {
    tensor.momentum = call.In<float>(2) + begin;
    tensor.next_momentum = call.Out<float>(1) + begin;
  }
  tensor.elements = static_cast<int>(end - begin);
  return tensor;
}

// Collects tensors and launches whenever the list is full.
template <bool kMomentum>
class SgdLauncher {
 public:
  SgdLauncher(cudaStream_t stream, const SgdSettings& settings) : stream_(stream) {
    tensors_.settings = settings;
  }
  void Add(const KernelCall& call) {
    const int64_t elements = call.out_shape(0).elements();
    for (int64_t begin = 0; begin < elements; begin += kMaxSgdElements) {
      if (tensors_.num_tensors == kMaxSgdTensors) Launch();
      tensors_.Add(SgdPiece<kMomentum>(call, begin, std::min(elements, begin + kMaxSgdElements)));
    }
  }
  void Launch() {
    if (tensors_.num_blocks == 0) return;
    SgdUpdateKernel<kMomentum>
        <<<static_cast<unsigned>(tensors_.num_blocks), kSgdThreads, 0, stream_>>>(tensors_);
    THIMBLE_CUDA_LAUNCHED();
    tensors_.Clear();
  }

 private:
  cudaStream_t stream_;
  SgdTensors tensors_;
};

// One launch for all calls with equal settings. Their order does not matter: no call accesses
// memory that another writes.
template <bool kMomentum>
void UpdateAll(std::span<const KernelCall> calls) {
  for (size_t first = 0; first < calls.size(); ++first) {
    const SgdSettings settings = SgdSettingsOf<kMomentum>(calls[first]);
    const auto is_alike = [&](const KernelCall& call) {
      return SgdSettingsOf<kMomentum>(call) == settings;
    };
    const auto before = calls.first(first);
    if (std::any_of(before.begin(), before.end(), is_alike)) continue;
    SgdLauncher<kMomentum> launcher(calls[first].stream, settings);
    for (const KernelCall& call : calls.subspan(first)) {
      if (is_alike(call)) launcher.Add(call);
    }
    launcher.Launch();
  }
}

}  // namespace

void SgdUpdateCuda::Run(const KernelCall& call) { UpdateAll<true>({&call, 1}); }

void SgdUpdateCuda::RunGroup(std::span<const KernelCall> calls) { UpdateAll<true>(calls); }

void SgdUpdatePlainCuda::Run(const KernelCall& call) { UpdateAll<false>({&call, 1}); }

void SgdUpdatePlainCuda::RunGroup(std::span<const KernelCall> calls) { UpdateAll<false>(calls); }

}  // namespace thimble
