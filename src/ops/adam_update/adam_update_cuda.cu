#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/ops/adam_update/adam_update.h"
#include "thimble/ops/update_numbers.cuh"
#include "thimble/ops/update_rounding.h"
#include "thimble/ops/update_tensors.h"

namespace thimble {
namespace {

// Arrays of a tensor, in the order of the op.
constexpr int kAdamInputs = static_cast<int>(kAdamArrays);
constexpr int kAdamOutputs = 3;

// Settings shared by all tensors of a launch; pointers are on the device.
struct AdamSettings {
  const float* learning_rate = nullptr;
  const int32_t* update = nullptr;
  const float* factor = nullptr;  // null: 1
  double beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
  std::array<uint32_t, 2> key = {};  // of stochastic rounding
  uint32_t streams_from = 0;         // added to the stream of each tensor
  uint32_t first_draw = 0;           // of the first element of the tensors
  DType in_types[kAdamInputs] = {};
  DType out_types[kAdamOutputs] = {};
  bool stochastic = false;
  friend bool operator==(const AdamSettings&, const AdamSettings&) = default;
};

struct AdamTensor {
  const void* in[kAdamInputs] = {};
  void* out[kAdamOutputs] = {};
  int elements = 0;
  int first_block = 0;
};

// Within the 4 KiB of kernel arguments that every GPU supports.
using AdamTensors = UpdateTensorList<AdamTensor, AdamSettings, 54>;
static_assert(sizeof(AdamTensors) <= 4096);

// AdamFactors as floats.
struct AdamNow {
  float beta1, beta2, new_share1, new_share2;
  float rate, root_scale, epsilon, decay;
  float bound_slope, bound_offset;
  float gradient_factor;
};

// Powers in doubles are slow: one thread of a block computes them.
__device__ AdamNow NowOf(const AdamSettings& settings) {
  const AdamFactors factors(
      {settings.beta1, settings.beta2, settings.epsilon, settings.weight_decay},
      *settings.learning_rate, *settings.update);
  const auto narrow = [](double factor) { return static_cast<float>(factor); };
  return {.beta1 = narrow(factors.beta1),
          .beta2 = narrow(factors.beta2),
          .new_share1 = narrow(factors.new_share1),
          .new_share2 = narrow(factors.new_share2),
          .rate = narrow(factors.rate),
          .root_scale = narrow(factors.root_scale),
          .epsilon = narrow(factors.epsilon),
          .decay = narrow(factors.decay),
          .bound_slope = narrow(factors.bound_slope),
          .bound_offset = narrow(factors.bound_offset),
          .gradient_factor = settings.factor == nullptr ? 1.0F : *settings.factor};
}

// Replaces weight, first moment and root of second moment by the next ones.
__device__ void AdamElement(const AdamNow& now, float gradient, float& weight, float& moment,
                            float& root) {
  const float scaled = now.gradient_factor * gradient;
  moment = fmaf(now.beta1, moment, now.new_share1 * scaled);
  root = sqrtf(fmaf(now.beta2, root * root, now.new_share2 * (scaled * scaled)));
  const float bound = fmaf(now.bound_slope, root, now.bound_offset);
  // NaN stays, whatever fminf and fmaxf make of it: it is in the root too.
  const float numerator = now.rate * fmaxf(fminf(moment, bound), -bound);
  const float step = numerator / fmaf(root, now.root_scale, now.epsilon);
  weight -= fmaf(now.decay, weight, step);
}

// All types are known when the code is compiled, if Storage is not AnyNumber.
template <class Storage>
__device__ DType AdamTypeOf(DType type) {
  if constexpr (std::is_same_v<Storage, AnyNumber>) {
    return type;
  } else {
    return DTypeOf<Storage>();
  }
}

template <class Storage>
__device__ void CopyAdamNumbers(const AdamSettings& settings, const AdamTensor& tensor, int i,
                                int count) {
  // Everything but the gradient.
  constexpr int kKept[kAdamOutputs] = {0, 2, 3};
#pragma unroll
  for (int output = 0; output < kAdamOutputs; ++output) {
    const int input = kKept[output];
    CopyFourNumbers(AdamTypeOf<Storage>(settings.in_types[input]), tensor.in[input],
                    AdamTypeOf<Storage>(settings.out_types[output]), tensor.out[output], i, count);
  }
}

template <class Storage>
__device__ void UpdateAdamNumbers(const AdamSettings& settings, const AdamNow& now,
                                  const AdamTensor& tensor, uint32_t stream, int i, int count) {
  FourNumbers in[kAdamInputs];
#pragma unroll
  for (int input = 0; input < kAdamInputs; ++input) {
    in[input] =
        LoadFourNumbers(AdamTypeOf<Storage>(settings.in_types[input]), tensor.in[input], i, count);
  }
  FourNumbers out[kAdamOutputs] = {in[0], in[2], in[3]};
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    AdamElement(now, in[1].numbers[k], out[0].numbers[k], out[1].numbers[k], out[2].numbers[k]);
  }
  RoundingDraw draw{.tensor = stream, .update = static_cast<uint32_t>(*settings.update)};
#pragma unroll
  for (int output = 0; output < kAdamOutputs; ++output) {
    FourRounding rounding{.stochastic = settings.stochastic};
    if (settings.stochastic) {
      rounding.words = Philox4x32(
          settings.key,
          draw.ForOutput(output).Counter(settings.first_draw + static_cast<uint32_t>(i) / 4));
    }
    StoreFourNumbers(AdamTypeOf<Storage>(settings.out_types[output]), out[output], rounding, output,
                     tensor.out[output], i, count);
  }
}

template <class Storage>
__global__ void __launch_bounds__(kUpdateThreads)
    AdamKernel(const __grid_constant__ AdamTensors tensors) {
  __shared__ AdamNow shared_now;
  WaitForKernelsBefore();
  const AdamSettings& settings = tensors.settings;
  if (threadIdx.x == 0) shared_now = NowOf(settings);
  __syncthreads();
  const AdamNow now = shared_now;
  const UpdatePlace place(tensors);
  const AdamTensor& tensor = tensors.tensors[place.tensor];
  const uint32_t stream = settings.streams_from + tensors.streams[place.tensor];
#pragma unroll 1
  for (int pass = 0; pass < kUpdatePasses; ++pass) {
    const int i = place.first + pass * 4 * kUpdateThreads;
    const int count = max(0, min(4, tensor.elements - i));
    if (now.gradient_factor == 0) {  // the update is skipped
      CopyAdamNumbers<Storage>(settings, tensor, i, count);
    } else {
      UpdateAdamNumbers<Storage>(settings, now, tensor, stream, i, count);
    }
  }
}

AdamSettings AdamSettingsOf(const KernelCall& call) {
  const AdamSpec spec = AdamSpecOf(call.attributes);
  AdamSettings settings;
  settings.learning_rate = call.In<float>(kAdamRate);
  settings.update = call.In<int32_t>(kAdamUpdate);
  if (call.inputs.size() > kAdamFactor) settings.factor = call.In<float>(kAdamFactor);
  settings.beta1 = spec.beta1;
  settings.beta2 = spec.beta2;
  settings.epsilon = spec.epsilon;
  settings.weight_decay = spec.weight_decay;
  for (size_t i = 0; i < kAdamInputs; ++i) settings.in_types[i] = call.inputs[i].dtype;
  for (size_t i = 0; i < kAdamOutputs; ++i) settings.out_types[i] = call.outputs[i].dtype;
  if (RoundsAtRandom(call.attributes)) {
    const RoundingDraw draw = DrawOf(call.attributes);
    settings.stochastic = true;
    settings.key = draw.source.key();
    settings.streams_from = draw.tensor & ~0xFFFFU;
  }
  return settings;
}

// Elements [begin, end) of the arrays of a call.
AdamTensor AdamPieceOf(const KernelCall& call, int64_t begin, int64_t end) {
  const auto at = [&](const TensorView& view) {
    return static_cast<std::byte*>(view.data) +
           StorageBytes(view.dtype, static_cast<size_t>(begin));
  };
  AdamTensor tensor;
  for (size_t i = 0; i < kAdamInputs; ++i) tensor.in[i] = at(call.inputs[i]);
  for (size_t i = 0; i < kAdamOutputs; ++i) tensor.out[i] = at(call.outputs[i]);
  tensor.elements = static_cast<int>(end - begin);
  return tensor;
}

bool AreAllAdamOf(DType type, const AdamSettings& settings) {
  const auto is_type = [type](DType other) { return other == type; };
  return std::all_of(std::begin(settings.in_types), std::end(settings.in_types), is_type) &&
         std::all_of(std::begin(settings.out_types), std::end(settings.out_types), is_type);
}

// Collects tensors with equal settings, and launches whenever the list is full.
class AdamLauncher {
 public:
  AdamLauncher(cudaStream_t stream, const AdamSettings& settings) : stream_(stream) {
    tensors_.settings = settings;
  }
  void Add(const KernelCall& call) {
    // A tensor with more elements is split, because elements are counted in 32 bits.
    constexpr int64_t kMostElements = int64_t{1} << 30;
    const int64_t elements = call.out_shape(0).elements();
    for (int64_t begin = 0; begin < elements; begin += kMostElements) {
      const auto first_draw = static_cast<uint32_t>(begin / 4);
      if (tensors_.num_tensors == AdamTensors::kMax || first_draw != tensors_.settings.first_draw) {
        Launch();
        tensors_.settings.first_draw = first_draw;
      }
      tensors_.Add(AdamPieceOf(call, begin, std::min(elements, begin + kMostElements)),
                   static_cast<uint16_t>(call.attributes.Int("stream") & 0xFFFF));
    }
  }
  void Launch() {
    if (tensors_.num_blocks == 0) return;
    const auto blocks = static_cast<unsigned>(tensors_.num_blocks);
    if (AreAllAdamOf(DType::kF32, tensors_.settings)) {
      AdamKernel<float><<<blocks, kUpdateThreads, 0, stream_>>>(tensors_);
    } else {
      AdamKernel<AnyNumber><<<blocks, kUpdateThreads, 0, stream_>>>(tensors_);
    }
    THIMBLE_CUDA_LAUNCHED();
    tensors_.Clear();
  }

 private:
  cudaStream_t stream_;
  AdamTensors tensors_;
};

}  // namespace

void AdamUpdateCuda::Run(const KernelCall& call) { RunGroup({&call, 1}); }

// One launch for all calls with equal settings. Their order does not matter: no call accesses
// memory that another writes.
void AdamUpdateCuda::RunGroup(std::span<const KernelCall> calls) {
  for (size_t first = 0; first < calls.size(); ++first) {
    const AdamSettings settings = AdamSettingsOf(calls[first]);
    const auto is_alike = [&](const KernelCall& call) { return AdamSettingsOf(call) == settings; };
    const auto before = calls.first(first);
    if (std::any_of(before.begin(), before.end(), is_alike)) continue;
    AdamLauncher launcher(calls[first].stream, settings);
    for (const KernelCall& call : calls.subspan(first)) {
      if (is_alike(call)) launcher.Add(call);
    }
    launcher.Launch();
  }
}

}  // namespace thimble
