#include <cuda_runtime.h>

#include <algorithm>
#include <type_traits>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/ops/sgd_update/sgd_ports.h"
#include "thimble/ops/sgd_update/sgd_step.cuh"
#include "thimble/ops/sgd_update/sgd_tensors.h"
#include "thimble/ops/sgd_update/sgd_update.h"
#include "thimble/ops/update_numbers.cuh"

namespace thimble {
namespace {

// All numbers are f32: nothing is rounded.
template <SgdOp kOp>
__device__ void UpdateFloats(const SgdSettings& settings, const SgdNow& now,
                             const SgdTensor& tensor, int i) {
  if (i >= tensor.elements) return;
  const bool skipped = WritesWeight(kOp) && now.factor == 0;
  const int count = min(4, tensor.elements - i);
  FourNumbers weight = LoadFourFloats(tensor.weight, i, count);
  FourNumbers momentum = LoadFourFloats(tensor.momentum, i, count);
  if (!skipped) {
    const FourNumbers gradient = LoadFourFloats(tensor.gradient, i, count);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      UpdateElement(kOp, settings, now, gradient.numbers[k], weight.numbers[k],
                    momentum.numbers[k]);
    }
  }
  StoreFourFloats(weight, tensor.next_weight, i, count);
  StoreFourFloats(momentum, tensor.next_momentum, i, count);
}

template <SgdOp kOp>
__global__ void __launch_bounds__(kUpdateThreads)
    SgdFloatKernel(const __grid_constant__ SgdTensors tensors) {
  WaitForKernelsBefore();
  const UpdatePlace place(tensors);
  const SgdTensor tensor = tensors.tensors[place.tensor];
  const SgdNow now = ReadNow(tensors.settings);
#pragma unroll
  for (int pass = 0; pass < kUpdatePasses; ++pass) {
    UpdateFloats<kOp>(tensors.settings, now, tensor, place.first + pass * 4 * kUpdateThreads);
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

// Any types.
template <SgdOp kOp, class Storage, class List>
__global__ void __launch_bounds__(kUpdateThreads) SgdKernel(const __grid_constant__ List tensors) {
  WaitForKernelsBefore();
  const UpdatePlace place(tensors);
  const SgdTensor tensor = StoredArrays(tensors.settings, tensors.tensors[place.tensor]);
  // Blocks are launched for all elements of a packed tensor, of which only some are stored.
  if (List::kPacked && place.first - 4 * static_cast<int>(threadIdx.x) >= tensor.elements) return;
  const SgdSettings settings = WithTypes<Storage>(tensors.settings);
  const SgdNow now = ReadNow(settings);
  const uint32_t stream = settings.streams_from + tensors.streams[place.tensor];
#pragma unroll 1
  for (int pass = 0; pass < kUpdatePasses; ++pass) {
    const int i = place.first + pass * 4 * kUpdateThreads;
    const int count = max(0, min(4, tensor.elements - i));
    UpdateNumbers<SgdCallers::kBlock>(kOp, settings, now, tensor, {i, i, count, stream}, [&] {
      return LoadFourNumbers(settings.gradient_type, tensor.gradient, i, count);
    });
  }
}

// A tensor with more elements is split, because elements are counted in 32 bits.
constexpr int64_t kMaxSgdElements = int64_t{1} << 30;

// Whether all numbers of an op have this type.
template <SgdOp kOp>
bool AreAll(DType type, const SgdSettings& s) {
  return s.weight_type == type && (!HasGradient(kOp) || s.gradient_type == type) &&
         (!HasMomentum(kOp) || s.momentum_type == type) &&
         (!WritesWeight(kOp) || s.next_weight_type == type) &&
         (!WritesMomentum(kOp) || s.next_momentum_type == type);
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
      SgdKernel<kOp, AnyNumber><<<blocks, kUpdateThreads, 0, stream_>>>(tensors_);
    } else if (AreAll<kOp>(DType::kF32, tensors_.settings)) {
      SgdFloatKernel<kOp><<<blocks, kUpdateThreads, 0, stream_>>>(tensors_);
    } else if (AreAll<kOp>(DType::kF16, tensors_.settings)) {
      SgdKernel<kOp, F16><<<blocks, kUpdateThreads, 0, stream_>>>(tensors_);
    } else if (AreAll<kOp>(DType::kBF16, tensors_.settings)) {
      SgdKernel<kOp, BF16><<<blocks, kUpdateThreads, 0, stream_>>>(tensors_);
    } else {
      SgdKernel<kOp, AnyNumber><<<blocks, kUpdateThreads, 0, stream_>>>(tensors_);
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
