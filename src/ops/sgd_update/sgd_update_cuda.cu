#include <cuda_runtime.h>

#include <algorithm>
#include <type_traits>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/ops/sgd_update/sgd_numbers.cuh"
#include "thimble/ops/sgd_update/sgd_tensors.h"
#include "thimble/ops/sgd_update/sgd_update.h"
#include "thimble/tensor/packed.h"

namespace thimble {
namespace {

enum class SgdOp { kUpdate, kPlain, kGather, kApply, kApplyFeedback };

// What an op reads and writes besides weights.
constexpr bool OnlyApplies(SgdOp op) { return op == SgdOp::kApply || op == SgdOp::kApplyFeedback; }
constexpr bool HasGradient(SgdOp op) { return !OnlyApplies(op); }
constexpr bool HasMomentum(SgdOp op) { return op != SgdOp::kPlain; }
constexpr bool WritesWeight(SgdOp op) { return op != SgdOp::kGather; }
constexpr bool WritesMomentum(SgdOp op) { return op != SgdOp::kPlain && op != SgdOp::kApply; }
constexpr bool CanFeedBack(SgdOp op) { return WritesWeight(op) && WritesMomentum(op); }

// The numbers that a step of a launch reads.
struct SgdNow {
  float rate;
  float factor;
  bool first;  // part of the batch
  float gain;  // of error feedback
};

template <SgdOp kOp>
__device__ void UpdateElement(const SgdSettings& settings, const SgdNow& now, float gradient,
                              float& weight, float& momentum) {
  if constexpr (OnlyApplies(kOp)) {
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
  const float rate = settings.learning_rate == nullptr ? 0.0F : *settings.learning_rate;
  return {.rate = rate,
          .factor = settings.factor == nullptr ? 1.0F : *settings.factor,
          .first = settings.seen != nullptr && *settings.seen == 0,
          .gain = FeedbackGain(settings.momentum, settings.nesterov, settings.feedback_rate, rate)};
}

// The place of a block: its tensor, and this thread's first element.
struct SgdPlace {
  int tensor, first;

  template <class List>
  __device__ explicit SgdPlace(const List& tensors)
      : tensor(tensors.Find(static_cast<int>(blockIdx.x))),
        first((static_cast<int>(blockIdx.x) - tensors.tensors[tensor].first_block) *
                  kSgdBlockElements +
              4 * static_cast<int>(threadIdx.x)) {}
};

// The arrays of the elements that are stored.
__device__ SgdTensor StoredArrays(const SgdSettings& /*settings*/, const SgdTensor& tensor) {
  return tensor;
}
__device__ SgdTensor StoredArrays(const SgdSettings& settings, const PackedSgdTensor& tensor) {
  const PackedPlace place{nullptr, tensor.starts, tensor.blocks, tensor.index};
  const auto moved = [&](auto* array, DType type) {
    using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(array)>>,
                                    const std::byte, std::byte>;
    return array == nullptr ? nullptr : static_cast<Byte*>(array) + place.OffsetBytes(type);
  };
  SgdTensor stored = tensor;
  stored.weight = moved(tensor.weight, settings.weight_type);
  stored.gradient = moved(tensor.gradient, settings.gradient_type);
  stored.momentum = moved(tensor.momentum, settings.momentum_type);
  stored.next_weight = moved(tensor.next_weight, settings.next_weight_type);
  stored.next_momentum = moved(tensor.next_momentum, settings.next_momentum_type);
  // Of a split tensor: those of its piece.
  const auto rest = static_cast<int64_t>(place.count()) - int64_t{4} * settings.first_draw;
  stored.elements = static_cast<int>(min(int64_t{tensor.elements}, max(int64_t{0}, rest)));
  return stored;
}

// All numbers are f32: nothing is rounded.
template <SgdOp kOp>
__device__ void UpdateFloats(const SgdSettings& settings, const SgdNow& now,
                             const SgdTensor& tensor, int i) {
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

template <SgdOp kOp>
__global__ void __launch_bounds__(kSgdThreads)
    SgdFloatKernel(const __grid_constant__ SgdTensors tensors) {
  WaitForKernelsBefore();
  const SgdPlace place(tensors);
  const SgdTensor tensor = tensors.tensors[place.tensor];
  const SgdNow now = ReadNow<kOp>(tensors.settings);
#pragma unroll
  for (int pass = 0; pass < kSgdPasses; ++pass) {
    UpdateFloats<kOp>(tensors.settings, now, tensor, place.first + pass * 4 * kSgdThreads);
  }
}

// Types that are known when the code is compiled, or those of the settings.
template <class Storage>
__device__ SgdSettings WithTypes(SgdSettings settings) {
  if constexpr (!std::is_same_v<Storage, AnyNumber>) {
    settings.weight_type = settings.gradient_type = settings.momentum_type = DTypeOf<Storage>();
    settings.next_weight_type = settings.next_momentum_type = DTypeOf<Storage>();
  }
  return settings;
}

// Any types, rounding at random if the settings ask for it. Called by all threads of a block.
template <SgdOp kOp>
__device__ void UpdateFour(const SgdSettings& settings, const SgdNow& now, const SgdTensor& tensor,
                           uint32_t stream, int i) {
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
    const uint32_t draw = settings.first_draw + static_cast<uint32_t>(i) / 4;
    rounding.words =
        Philox4x32(settings.key, {draw, stream, occasion, static_cast<uint32_t>(*settings.update)});
  }
  if (CanFeedBack(kOp) && now.gain > 0) {
    const SgdFour stored =
        RoundSgdFour(settings.next_weight_type, weight, rounding, RoundingDraw::ShiftOf(0));
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float returned = now.gain * (weight.numbers[k] - stored.numbers[k]);
      momentum.numbers[k] -= fmaxf(fminf(returned, kMostFeedback), -kMostFeedback);
    }
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

template <SgdOp kOp, class Storage, class List>
__global__ void __launch_bounds__(kSgdThreads) SgdKernel(const __grid_constant__ List tensors) {
  WaitForKernelsBefore();
  const SgdPlace place(tensors);
  const SgdTensor tensor = StoredArrays(tensors.settings, tensors.tensors[place.tensor]);
  // Blocks are launched for all elements of a packed tensor, of which only some are stored.
  if (List::kPacked && place.first - 4 * static_cast<int>(threadIdx.x) >= tensor.elements) return;
  const SgdSettings settings = WithTypes<Storage>(tensors.settings);
  const SgdNow now = ReadNow<kOp>(settings);
  const uint32_t stream = settings.streams_from + tensors.streams[place.tensor];
#pragma unroll 1
  for (int pass = 0; pass < kSgdPasses; ++pass) {
    UpdateFour<kOp>(settings, now, tensor, stream, place.first + pass * 4 * kSgdThreads);
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
    case SgdOp::kApplyFeedback:
      return {kSgdApplyInputs, kNoPort, 1, 2, kNoPort, 0, 1};
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
  if constexpr (HasGradient(kOp)) {
    settings.weight_decay = static_cast<float>(call.attributes.Float("weight_decay"));
  }
  if constexpr (WritesMomentum(kOp)) {
    settings.momentum = static_cast<float>(call.attributes.Float("momentum"));
  }
  if constexpr (CanFeedBack(kOp)) {
    settings.feedback_rate = static_cast<float>(call.attributes.Float("feedback_rate"));
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

// Whether all numbers of an op have this type.
template <SgdOp kOp>
bool AreAll(DType type, const SgdSettings& s) {
  return s.weight_type == type && (!HasGradient(kOp) || s.gradient_type == type) &&
         (!HasMomentum(kOp) || s.momentum_type == type) &&
         (!WritesWeight(kOp) || s.next_weight_type == type) &&
         (!WritesMomentum(kOp) || s.next_momentum_type == type);
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

// The tensor of a call as a list takes it.
void SetPlace(const TensorView& /*weight*/, SgdTensor& /*tensor*/) {}
void SetPlace(const TensorView& weight, PackedSgdTensor& tensor) {
  tensor.starts = weight.packed.starts;
  tensor.blocks = static_cast<int>(weight.packed.blocks);
  tensor.index = static_cast<int>(weight.packed.tensor);
}

// Collects tensors and launches whenever the list is full.
template <SgdOp kOp, class List>
class SgdLauncher {
 public:
  SgdLauncher(cudaStream_t stream, const SgdSettings& settings) : stream_(stream) {
    tensors_.settings = settings;
  }
  void Add(const KernelCall& call) {
    const int64_t elements = call.out_shape(0).elements();
    for (int64_t begin = 0; begin < elements; begin += kMaxSgdElements) {
      const auto first_draw = static_cast<uint32_t>(begin / 4);
      if (tensors_.num_tensors == List::kMax || first_draw != tensors_.settings.first_draw) {
        Launch();
        tensors_.settings.first_draw = first_draw;
      }
      std::remove_all_extents_t<decltype(List::tensors)> tensor{
          SgdPiece<kOp>(call, begin, std::min(elements, begin + kMaxSgdElements))};
      SetPlace(call.inputs[0], tensor);
      tensors_.Add(tensor, static_cast<uint16_t>(call.attributes.Int("stream") & 0xFFFF));
    }
  }
  void Launch() {
    if (tensors_.num_blocks == 0) return;
    const auto blocks = static_cast<unsigned>(tensors_.num_blocks);
    if constexpr (List::kPacked) {
      // Few numbers: a kernel for each type would take more time to compile than it saves.
      SgdKernel<kOp, AnyNumber><<<blocks, kSgdThreads, 0, stream_>>>(tensors_);
    } else if (AreAll<kOp>(DType::kF32, tensors_.settings)) {
      SgdFloatKernel<kOp><<<blocks, kSgdThreads, 0, stream_>>>(tensors_);
    } else if (AreAll<kOp>(DType::kF16, tensors_.settings)) {
      SgdKernel<kOp, F16><<<blocks, kSgdThreads, 0, stream_>>>(tensors_);
    } else if (AreAll<kOp>(DType::kBF16, tensors_.settings)) {
      SgdKernel<kOp, BF16><<<blocks, kSgdThreads, 0, stream_>>>(tensors_);
    } else {
      SgdKernel<kOp, AnyNumber><<<blocks, kSgdThreads, 0, stream_>>>(tensors_);
    }
    THIMBLE_CUDA_LAUNCHED();
    tensors_.Clear();
  }

 private:
  cudaStream_t stream_;
  List tensors_;
};

// One launch for all calls with equal settings, and one for those with packed tensors. Their order
// does not matter: no call accesses memory that another writes.
template <SgdOp kOp>
void UpdateAll(std::span<const KernelCall> calls) {
  for (size_t first = 0; first < calls.size(); ++first) {
    const SgdSettings settings = SgdSettingsOf<kOp>(calls[first]);
    const auto is_alike = [&](const KernelCall& call) {
      return SgdSettingsOf<kOp>(call) == settings;
    };
    const auto before = calls.first(first);
    if (std::any_of(before.begin(), before.end(), is_alike)) continue;
    SgdLauncher<kOp, SgdTensors> dense(calls[first].stream, settings);
    SgdLauncher<kOp, PackedSgdTensors> packed(calls[first].stream, settings);
    for (const KernelCall& call : calls.subspan(first)) {
      if (!is_alike(call)) continue;
      call.inputs[0].is_packed() ? packed.Add(call) : dense.Add(call);
    }
    dense.Launch();
    packed.Launch();
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

void SgdApplyFeedbackCuda::Run(const KernelCall& call) {
  UpdateAll<SgdOp::kApplyFeedback>({&call, 1});
}
void SgdApplyFeedbackCuda::RunGroup(std::span<const KernelCall> calls) {
  UpdateAll<SgdOp::kApplyFeedback>(calls);
}

}  // namespace thimble
