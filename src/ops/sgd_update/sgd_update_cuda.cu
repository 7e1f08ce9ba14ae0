#include <cuda_runtime.h>

#include <algorithm>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/ops/sgd_update/sgd_numbers.cuh"
#include "thimble/ops/sgd_update/sgd_tensors.h"
#include "thimble/ops/sgd_update/sgd_update.h"

namespace thimble {
namespace {

enum class SgdOp { kUpdate, kPlain, kGather, kApply };

// What an op reads and writes besides weights.
constexpr bool HasGradient(SgdOp op) { return op != SgdOp::kApply; }
constexpr bool HasMomentum(SgdOp op) { return op != SgdOp::kPlain; }
constexpr bool WritesWeight(SgdOp op) { return op != SgdOp::kGather; }
constexpr bool WritesMomentum(SgdOp op) { return op == SgdOp::kUpdate || op == SgdOp::kGather; }

// The numbers that a step of a launch reads.
struct SgdNow {
  float rate;
  float factor;
  bool first;  // part of the batch
};

template <SgdOp kOp>
__device__ void UpdateElement(const SgdSettings& settings, const SgdNow& now, float gradient,
                              float& weight, float& momentum) {
  if constexpr (kOp == SgdOp::kApply) {
    weight = fmaf(-now.rate, momentum, weight);
    return;
  }
  const float scaled = now.factor == 0 ? 0.0F : now.factor * gradient;
  if (kOp == SgdOp::kGather && !now.first) {
    momentum = fmaf(now.factor, now.factor == 0 ? 0.0F : gradient, momentum);
    return;
  }
  const float slope = fmaf(settings.weight_decay, weight, scaled);
  float step = slope;
  if constexpr (kOp != SgdOp::kPlain) {
    momentum = fmaf(settings.momentum, momentum, slope);
    step = settings.nesterov ? fmaf(settings.momentum, momentum, slope) : momentum;
  }
  if constexpr (WritesWeight(kOp)) weight = fmaf(-now.rate, step, weight);
}

template <SgdOp kOp>
__device__ SgdNow ReadNow(const SgdSettings& settings) {
  return {.rate = settings.learning_rate == nullptr ? 0.0F : *settings.learning_rate,
          .factor = settings.factor == nullptr ? 1.0F : *settings.factor,
          .first = settings.seen != nullptr && *settings.seen == 0};
}

// All numbers are f32: nothing is rounded.
template <SgdOp kOp>
__global__ void __launch_bounds__(kSgdThreads)
    SgdFloatKernel(const __grid_constant__ SgdTensors tensors) {
  WaitForKernelsBefore();
  const int block = static_cast<int>(blockIdx.x);
  const SgdTensor tensor = tensors.tensors[tensors.Find(block)];
  const SgdSettings& settings = tensors.settings;
  const SgdNow now = ReadNow<kOp>(settings);
  const int i =
      (block - tensor.first_block) * kSgdBlockElements + 4 * static_cast<int>(threadIdx.x);
  if (i >= tensor.elements) return;
  const bool skipped = WritesWeight(kOp) && now.factor == 0;
  const int count = min(4, tensor.elements - i);
  SgdFour weight = LoadSgdFloats(tensor.weight, i, count);
  SgdFour momentum = LoadSgdFloats(tensor.momentum, i, count);
  if (!skipped) {
    const SgdFour gradient = LoadSgdFloats(tensor.gradient, i, count);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      UpdateElement<kOp>(settings, now, gradient.numbers[k], weight.numbers[k],
                         momentum.numbers[k]);
    }
  }
  StoreSgdFloats(weight, tensor.next_weight, i, count);
  StoreSgdFloats(momentum, tensor.next_momentum, i, count);
}

// Any types, rounding at random if the settings ask for it.
template <SgdOp kOp>
__global__ void __launch_bounds__(kSgdThreads)
    SgdKernel(const __grid_constant__ SgdTensors tensors) {
  WaitForKernelsBefore();
  const int block = static_cast<int>(blockIdx.x);
  const int index = tensors.Find(block);
  const SgdTensor tensor = tensors.tensors[index];
  const SgdSettings& settings = tensors.settings;
  const SgdNow now = ReadNow<kOp>(settings);
  const int i =
      (block - tensor.first_block) * kSgdBlockElements + 4 * static_cast<int>(threadIdx.x);
  const int count = max(0, min(4, tensor.elements - i));
  if (now.factor == 0 && !(kOp == SgdOp::kGather && now.first)) {  // the same for all threads
    if constexpr (WritesWeight(kOp)) {
      CopySgdFour(settings.weight_type, tensor.weight, settings.next_weight_type,
                  tensor.next_weight, i, count);
    }
    if constexpr (WritesMomentum(kOp)) {
      CopySgdFour(settings.momentum_type, tensor.momentum, settings.next_momentum_type,
                  tensor.next_momentum, i, count);
    }
    return;
  }
  SgdFour weight = LoadSgdFour(settings.weight_type, tensor.weight, i, count);
  SgdFour momentum = LoadSgdFour(settings.momentum_type, tensor.momentum, i, count);
  const SgdFour gradient = LoadSgdFour(settings.gradient_type, tensor.gradient, i, count);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    UpdateElement<kOp>(settings, now, gradient.numbers[k], weight.numbers[k], momentum.numbers[k]);
  }
  SgdRounding rounding{.stochastic = settings.stochastic};
  if (settings.stochastic) {
    const uint32_t occasion = kOp == SgdOp::kGather ? static_cast<uint32_t>(*settings.seen) + 1 : 0;
    const uint32_t stream = settings.streams_from + tensors.streams[index];
    const uint32_t draw = settings.first_draw + static_cast<uint32_t>(i) / 4;
    rounding.words =
        Philox4x32(settings.key, {draw, stream, occasion, static_cast<uint32_t>(*settings.update)});
  }
  if constexpr (WritesWeight(kOp)) {
    StoreSgdFour(settings.next_weight_type, weight, rounding, 0, tensor.next_weight, i, count);
  }
  if constexpr (WritesMomentum(kOp)) {
    constexpr int kOutput = kOp == SgdOp::kGather ? 0 : 1;
    StoreSgdFour(settings.next_momentum_type, momentum, rounding, kOutput, tensor.next_momentum, i,
                 count);
  }
}

// A tensor with more elements is split, because elements are counted in 32 bits.
constexpr int64_t kMaxSgdElements = int64_t{1} << 30;

// Where each op has its inputs and outputs.
constexpr size_t kNoPort = ~size_t{0};
struct SgdPorts {
  SgdInputs inputs;
  size_t gradient;
  size_t momentum;
  size_t learning_rate;
  size_t seen;
  size_t next_weight;
  size_t next_momentum;
};
constexpr SgdPorts PortsOf(SgdOp op) {
  switch (op) {
    case SgdOp::kUpdate:
      return {kSgdUpdateInputs, 1, 2, 3, kNoPort, 0, 1};
    case SgdOp::kPlain:
      return {kSgdPlainInputs, 1, kNoPort, 2, kNoPort, 0, kNoPort};
    case SgdOp::kGather:
      return {kSgdGatherInputs, 1, 2, kNoPort, 3, kNoPort, 0};
    case SgdOp::kApply:
      return {kSgdApplyInputs, kNoPort, 1, 2, kNoPort, 0, kNoPort};
  }
  return {};
}

template <SgdOp kOp>
SgdSettings SgdSettingsOf(const KernelCall& call) {
  constexpr SgdPorts kPorts = PortsOf(kOp);
  SgdSettings settings;
  if constexpr (kPorts.learning_rate != kNoPort)
    settings.learning_rate = call.In<float>(kPorts.learning_rate);
  if constexpr (kPorts.seen != kNoPort) settings.seen = call.In<int32_t>(kPorts.seen);
  if (call.inputs.size() > kPorts.inputs.update) {
    settings.update = call.In<int32_t>(kPorts.inputs.update);
  }
  if (call.inputs.size() > kPorts.inputs.factor) {
    settings.factor = call.In<float>(kPorts.inputs.factor);
  }
  settings.weight_type = call.inputs[0].dtype;
  if constexpr (kPorts.gradient != kNoPort)
    settings.gradient_type = call.inputs[kPorts.gradient].dtype;
  if constexpr (kPorts.momentum != kNoPort)
    settings.momentum_type = call.inputs[kPorts.momentum].dtype;
  if constexpr (kPorts.next_weight != kNoPort) {
    settings.next_weight_type = call.outputs[kPorts.next_weight].dtype;
  }
  if constexpr (kPorts.next_momentum != kNoPort) {
    settings.next_momentum_type = call.outputs[kPorts.next_momentum].dtype;
  }
  if constexpr (kOp != SgdOp::kApply) {
    settings.weight_decay = static_cast<float>(call.attributes.Float("weight_decay"));
  }
  if constexpr (WritesMomentum(kOp)) {
    settings.momentum = static_cast<float>(call.attributes.Float("momentum"));
  }
  if constexpr (kOp == SgdOp::kUpdate) {
    settings.nesterov = call.attributes.Int("nesterov") != 0;
  }
  if (RoundsAtRandom(call.attributes)) {
    const RoundingDraw draw = DrawOf(call.attributes);
    settings.stochastic = true;
    settings.key = draw.source.key();
    settings.streams_from = draw.tensor & ~0xFFFFU;
  }
  return settings;
}

bool IsFloat(const SgdSettings& settings) {
  return settings.weight_type == DType::kF32 && settings.gradient_type == DType::kF32 &&
         settings.momentum_type == DType::kF32 && settings.next_weight_type == DType::kF32 &&
         settings.next_momentum_type == DType::kF32;
}

template <SgdOp kOp>
SgdTensor SgdPiece(const KernelCall& call, int64_t begin, int64_t end) {
  constexpr SgdPorts kPorts = PortsOf(kOp);
  const auto at = [&](const TensorView& view) {
    return static_cast<std::byte*>(view.data) +
           StorageBytes(view.dtype, static_cast<size_t>(begin));
  };
  SgdTensor tensor;
  tensor.weight = at(call.inputs[0]);
  if constexpr (kPorts.gradient != kNoPort) tensor.gradient = at(call.inputs[kPorts.gradient]);
  if constexpr (kPorts.momentum != kNoPort) tensor.momentum = at(call.inputs[kPorts.momentum]);
  if constexpr (kPorts.next_weight != kNoPort)
    tensor.next_weight = at(call.outputs[kPorts.next_weight]);
  if constexpr (kPorts.next_momentum != kNoPort)
    tensor.next_momentum = at(call.outputs[kPorts.next_momentum]);
  tensor.elements = static_cast<int>(end - begin);
  return tensor;
}

// Collects tensors and launches whenever the list is full.
template <SgdOp kOp>
class SgdLauncher {
 public:
  SgdLauncher(cudaStream_t stream, const SgdSettings& settings) : stream_(stream) {
    tensors_.settings = settings;
  }
  void Add(const KernelCall& call) {
    const int64_t elements = call.out_shape(0).elements();
    for (int64_t begin = 0; begin < elements; begin += kMaxSgdElements) {
      const auto first_draw = static_cast<uint32_t>(begin / 4);
      if (tensors_.num_tensors == kMaxSgdTensors || first_draw != tensors_.settings.first_draw) {
        Launch();
        tensors_.settings.first_draw = first_draw;
      }
      tensors_.Add(SgdPiece<kOp>(call, begin, std::min(elements, begin + kMaxSgdElements)),
                   static_cast<uint16_t>(call.attributes.Int("stream") & 0xFFFF));
    }
  }
  void Launch() {
    if (tensors_.num_blocks == 0) return;
    const auto blocks = static_cast<unsigned>(tensors_.num_blocks);
    if (IsFloat(tensors_.settings)) {
      SgdFloatKernel<kOp><<<blocks, kSgdThreads, 0, stream_>>>(tensors_);
    } else {
      SgdKernel<kOp><<<blocks, kSgdThreads, 0, stream_>>>(tensors_);
    }
    THIMBLE_CUDA_LAUNCHED();
    tensors_.Clear();
  }

 private:
  cudaStream_t stream_;
  SgdTensors tensors_;
};

// One launch for all calls with equal settings. Their order does not matter: no call accesses
// memory that another writes.
template <SgdOp kOp>
void UpdateAll(std::span<const KernelCall> calls) {
  for (size_t first = 0; first < calls.size(); ++first) {
    const SgdSettings settings = SgdSettingsOf<kOp>(calls[first]);
    const auto is_alike = [&](const KernelCall& call) {
      return SgdSettingsOf<kOp>(call) == settings;
    };
    const auto before = calls.first(first);
    if (std::any_of(before.begin(), before.end(), is_alike)) continue;
    SgdLauncher<kOp> launcher(calls[first].stream, settings);
    for (const KernelCall& call : calls.subspan(first)) {
      if (is_alike(call)) launcher.Add(call);
    }
    launcher.Launch();
  }
}

}  // namespace

void SgdUpdateCuda::Run(const KernelCall& call) { UpdateAll<SgdOp::kUpdate>({&call, 1}); }
void SgdUpdateCuda::RunGroup(std::span<const KernelCall> calls) {
  UpdateAll<SgdOp::kUpdate>(calls);
}

void SgdUpdatePlainCuda::Run(const KernelCall& call) { UpdateAll<SgdOp::kPlain>({&call, 1}); }
void SgdUpdatePlainCuda::RunGroup(std::span<const KernelCall> calls) {
  UpdateAll<SgdOp::kPlain>(calls);
}

void SgdGatherCuda::Run(const KernelCall& call) { UpdateAll<SgdOp::kGather>({&call, 1}); }
void SgdGatherCuda::RunGroup(std::span<const KernelCall> calls) {
  UpdateAll<SgdOp::kGather>(calls);
}

void SgdApplyCuda::Run(const KernelCall& call) { UpdateAll<SgdOp::kApply>({&call, 1}); }
void SgdApplyCuda::RunGroup(std::span<const KernelCall> calls) { UpdateAll<SgdOp::kApply>(calls); }

}  // namespace thimble
