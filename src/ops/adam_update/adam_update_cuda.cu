#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/elements.cuh"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/warp.cuh"
#include "thimble/ops/adam_update/adam_update.h"
#include "thimble/ops/update_numbers.cuh"
#include "thimble/ops/update_rounding.h"
#include "thimble/ops/update_tensors.h"

namespace thimble {
namespace {

enum class AdamOp { kUpdate, kGather, kApply };

// The places of an op's arrays among its inputs and outputs.
constexpr int kNoAdamArray = -1;
struct AdamPorts {
  AdamInputs inputs;
  int outputs;  // how many
  int weight, gradient, moment, root;
  int next_weight, next_moment, next_root;
};
constexpr AdamPorts PortsOf(AdamOp op) {
  constexpr int kNone = kNoAdamArray;
  switch (op) {
    case AdamOp::kUpdate:
      return {kAdamUpdateInputs, 3, 0, 1, 2, 3, 0, 1, 2};
    case AdamOp::kGather:
      return {kAdamGatherInputs, 2, kNone, 0, 1, 2, kNone, 0, 1};
    case AdamOp::kApply:
      return {kAdamApplyInputs, 1, 0, kNone, 1, 2, 0, kNone, kNone};
  }
  return {};
}
template <AdamOp kOp>
constexpr AdamPorts kAdamPorts = PortsOf(kOp);
template <AdamOp kOp>
constexpr int kAdamArraysIn = static_cast<int>(kAdamPorts<kOp>.inputs.arrays);
template <AdamOp kOp>
constexpr int kAdamArraysOut = kAdamPorts<kOp>.outputs;

// Of any op.
constexpr int kMostAdamInputs = 4;
constexpr int kMostAdamOutputs = 3;

// Settings shared by all tensors of a launch; pointers are on the device.
struct AdamSettings {
  const float* learning_rate = nullptr;  // null: no weights change
  const int32_t* seen = nullptr;         // null: the gradients are whole
  const int32_t* update = nullptr;
  const float* factor = nullptr;  // null: 1
  double beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
  std::array<uint32_t, 2> key = {};  // of stochastic rounding
  uint32_t streams_from = 0;         // added to the stream of each tensor
  uint32_t first_draw = 0;           // of the first element of the tensors
  DType in_types[kMostAdamInputs] = {};
  DType out_types[kMostAdamOutputs] = {};
  bool aligned = false;  // whether all arrays begin at multiples of 16 bytes
  bool stochastic = false;
  friend bool operator==(const AdamSettings&, const AdamSettings&) = default;
};

struct AdamTensor {
  const void* in[kMostAdamInputs] = {};
  void* out[kMostAdamOutputs] = {};
  int elements = 0;
  int first_block = 0;
};

// Within the 4 KiB of kernel arguments that every driver supports, or the 32,764 bytes of all that
// run with CUDA 13: a translation network's 232 tensors are then two launches, one for each type.
constexpr int kMostAdamTensors = CUDART_VERSION >= 13000 ? 256 : 54;
using AdamTensors = UpdateTensorList<AdamTensor, AdamSettings, kMostAdamTensors>;
static_assert(sizeof(AdamTensors) + sizeof(int) <= (CUDART_VERSION >= 13000 ? 32764 : 4096));

// A block works on several pieces of kUpdateBlockElements, because the factors take about as long
// as one. A large GPU runs so many blocks at once, on each of 132 multiprocessors.
constexpr int kAdamBlocksAtOnce = 4;
constexpr int kMostAdamBlocks = 132 * kAdamBlocksAtOnce;

// AdamFactors as floats, and what else the numbers on the device say.
struct AdamNow {
  float kept1, kept2;  // shares of the old moments that remain
  float new_share1, new_share2;
  float rate, root_scale, epsilon, decay;
  float bound_slope, bound_offset;
  float gradient_factor;
  uint32_t update;
  uint32_t occasion;  // of random numbers
  bool skipped;       // nothing changes
};

// Called by all threads of a block. Powers and roots in doubles are slow: one thread each.
__device__ void SetNow(const AdamSettings& settings, AdamNow& now) {
  const auto factors = [&] {  // each thread computes only what it uses
    return AdamFactors({settings.beta1, settings.beta2, settings.epsilon, settings.weight_decay},
                       settings.learning_rate == nullptr ? 0.0F : *settings.learning_rate,
                       *settings.update);
  };
  const auto narrow = [](double factor) { return static_cast<float>(factor); };
  if (threadIdx.x == 0) now.rate = narrow(factors().rate);
  if (threadIdx.x == kWarpLanes) now.root_scale = narrow(factors().root_scale);
  if (threadIdx.x == 2 * kWarpLanes) {
    const AdamFactors all = factors();
    const bool first = settings.seen == nullptr || *settings.seen == 0;
    now.kept1 = first ? narrow(all.beta1) : 1.0F;
    now.kept2 = first ? narrow(all.beta2) : 1.0F;
    now.new_share1 = narrow(all.new_share1);
    now.new_share2 = narrow(all.new_share2);
    now.epsilon = narrow(all.epsilon);
    now.decay = narrow(all.decay);
    now.bound_slope = narrow(all.bound_slope);
    now.bound_offset = narrow(all.bound_offset);
    now.gradient_factor = settings.factor == nullptr ? 1.0F : *settings.factor;
    now.update = static_cast<uint32_t>(*settings.update);
    now.occasion = settings.seen == nullptr ? 0 : static_cast<uint32_t>(*settings.seen) + 1;
    // The first part also fades the moments.
    now.skipped = now.gradient_factor == 0 && (settings.seen == nullptr || !first);
  }
  __syncthreads();
}

// Replaces the moments by those with a gradient.
__device__ void GatherAdamElement(const AdamNow& now, float gradient, float& moment, float& root) {
  const float scaled = now.gradient_factor == 0 ? 0.0F : now.gradient_factor * gradient;
  moment = fmaf(now.kept1, moment, now.new_share1 * scaled);
  root = sqrtf(fmaf(now.kept2, root * root, now.new_share2 * (scaled * scaled)));
}

__device__ void ApplyAdamElement(const AdamNow& now, float moment, float root, float& weight) {
  const float bound = fmaf(now.bound_slope, root, now.bound_offset);
  // NaN stays, whatever fminf and fmaxf make of it: it is in the root too.
  const float numerator = now.rate * fmaxf(fminf(moment, bound), -bound);
  const float step = numerator / fmaf(root, now.root_scale, now.epsilon);
  weight -= fmaf(now.decay, weight, step);
}

// Four neighbouring elements of a tensor, the first of which is a multiple of 4, and what is stored
// of their next numbers.
template <AdamOp kOp>
struct AdamFour {
  FourNumbers in[kAdamArraysIn<kOp>];
  FourNumbers out[kAdamArraysOut<kOp>];

  __device__ void Update(const AdamNow& now) {
    constexpr AdamPorts kPorts = kAdamPorts<kOp>;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      float moment = in[kPorts.moment].numbers[k];
      float root = in[kPorts.root].numbers[k];
      if constexpr (kPorts.gradient != kNoAdamArray) {
        GatherAdamElement(now, in[kPorts.gradient].numbers[k], moment, root);
        out[kPorts.next_moment].numbers[k] = moment;
        out[kPorts.next_root].numbers[k] = root;
      }
      if constexpr (kPorts.weight != kNoAdamArray) {
        float weight = in[kPorts.weight].numbers[k];
        ApplyAdamElement(now, moment, root, weight);
        out[kPorts.next_weight].numbers[k] = weight;
      }
    }
  }
};

// Random words of four elements: the first two outputs share theirs, the third has its own.
template <AdamOp kOp>
using AdamWords = std::array<PhiloxWords, (kAdamArraysOut<kOp> + 1) / 2>;

// How a tensor's numbers are rounded.
template <AdamOp kOp>
struct AdamRounding {
  const AdamSettings& settings;
  uint32_t stream, update, occasion;

  // Of the four elements from `first` on; nothing if they are not rounded at random.
  __device__ AdamWords<kOp> WordsOf(int first) const {
    if (!settings.stochastic) return {};
    const RoundingDraw draw{.tensor = stream, .update = update, .occasion = occasion};
    const uint32_t place = settings.first_draw + static_cast<uint32_t>(first) / 4;
    if constexpr (kAdamArraysOut<kOp> <= 2) {
      return {Philox4x32(settings.key, draw.ForOutput(0).Counter(place))};
    } else {
      return Philox4x32<2>(settings.key,
                           {draw.ForOutput(0).Counter(place), draw.ForOutput(2).Counter(place)});
    }
  }
  __device__ FourRounding Of(const AdamWords<kOp>& words, int output) const {
    return {.stochastic = settings.stochastic, .words = words[output / 2]};
  }
};

// All types are known when the code is compiled, if Storage is not AnyNumber.
template <class Storage>
__device__ DType AdamTypeOf(DType type) {
  if constexpr (std::is_same_v<Storage, AnyNumber>) {
    return type;
  } else {
    return DTypeOf<Storage>();
  }
}

// At any addresses; `count` of the four elements from i on exist. Called by all threads of a block
// if Storage is AnyNumber: numbers may be q8.
template <AdamOp kOp, class Storage>
__device__ void CopyAdamNumbers(const AdamSettings& settings, const AdamTensor& tensor, int i,
                                int count) {
  constexpr AdamPorts kPorts = kAdamPorts<kOp>;
#pragma unroll
  for (int output = 0; output < kAdamArraysOut<kOp>; ++output) {
    const int input = output == kPorts.next_weight   ? kPorts.weight
                      : output == kPorts.next_moment ? kPorts.moment
                                                     : kPorts.root;
    CopyFourNumbers(AdamTypeOf<Storage>(settings.in_types[input]), tensor.in[input],
                    AdamTypeOf<Storage>(settings.out_types[output]), tensor.out[output], i, count);
  }
}
template <AdamOp kOp, class Storage>
__device__ void UpdateAdamNumbers(const AdamNow& now, const AdamTensor& tensor,
                                  const AdamRounding<kOp>& rounding, int i, int count) {
  const AdamSettings& settings = rounding.settings;
  AdamFour<kOp> four;
#pragma unroll
  for (int input = 0; input < kAdamArraysIn<kOp>; ++input) {
    four.in[input] =
        LoadFourNumbers(AdamTypeOf<Storage>(settings.in_types[input]), tensor.in[input], i, count);
  }
  four.Update(now);
  const AdamWords<kOp> words = rounding.WordsOf(i);
#pragma unroll
  for (int output = 0; output < kAdamArraysOut<kOp>; ++output) {
    StoreFourNumbers(AdamTypeOf<Storage>(settings.out_types[output]), four.out[output],
                     rounding.Of(words, output), output, tensor.out[output], i, count);
  }
}
template <AdamOp kOp, class Storage>
__device__ void NextAdamNumbers(const AdamNow& now, const AdamTensor& tensor,
                                const AdamRounding<kOp>& rounding, int i, int count) {
  if (now.skipped) {
    CopyAdamNumbers<kOp, Storage>(rounding.settings, tensor, i, count);
  } else {
    UpdateAdamNumbers<kOp, Storage>(now, tensor, rounding, i, count);
  }
}

// Elements of a thread that are loaded at once, 16 bytes of each array if they have 16 bits.
constexpr int kAdamWidth = 8;
static_assert(kAdamWidth * kUpdateThreads == kUpdateBlockElements);

// All arrays have one type and begin at multiples of 16 bytes; all kAdamWidth elements exist.
template <AdamOp kOp, class Storage>
__device__ void UpdateAdamPack(const AdamNow& now, const AdamTensor& tensor,
                               const AdamRounding<kOp>& rounding, int first) {
  Pack<Storage, kAdamWidth> in[kAdamArraysIn<kOp>];
#pragma unroll
  for (int input = 0; input < kAdamArraysIn<kOp>; ++input) {
    in[input] = LoadPack<kAdamWidth>(static_cast<const Storage*>(tensor.in[input]) + first);
  }
  float out[kAdamArraysOut<kOp>][kAdamWidth];
#pragma unroll
  for (int i = 0; i < kAdamWidth; i += 4) {
    AdamFour<kOp> four;
#pragma unroll
    for (int input = 0; input < kAdamArraysIn<kOp>; ++input) {
#pragma unroll
      for (int k = 0; k < 4; ++k) four.in[input].numbers[k] = in[input][i + k];
    }
    four.Update(now);
    const AdamWords<kOp> words = rounding.WordsOf(first + i);
#pragma unroll
    for (int output = 0; output < kAdamArraysOut<kOp>; ++output) {
      const FourNumbers rounded =
          RoundFourNumbers(DTypeOf<Storage>(), four.out[output], rounding.Of(words, output),
                           RoundingDraw::ShiftOf(output));
#pragma unroll
      for (int k = 0; k < 4; ++k) out[output][i + k] = rounded.numbers[k];
    }
  }
#pragma unroll
  for (int output = 0; output < kAdamArraysOut<kOp>; ++output) {
    StorePack(out[output], static_cast<Storage*>(tensor.out[output]) + first);
  }
}

// A block works on neighbouring pieces. Storage: of all arrays, which then begin at multiples of 16
// bytes; or AnyNumber.
template <AdamOp kOp, class Storage>
__global__ void __launch_bounds__(kUpdateThreads, kAdamBlocksAtOnce)
    AdamKernel(const __grid_constant__ AdamTensors tensors, int pieces_of_block) {
  constexpr bool kAny = std::is_same_v<Storage, AnyNumber>;
  __shared__ AdamNow shared_now;
  WaitForKernelsBefore();
  const int begin = static_cast<int>(blockIdx.x) * pieces_of_block;
  const int end = min(begin + pieces_of_block, tensors.num_blocks);
  int index = tensors.Find(begin);
  SetNow(tensors.settings, shared_now);
  const AdamNow now = shared_now;
#pragma unroll 1
  for (int piece = begin; piece < end; ++piece) {
    if (index + 1 < tensors.num_tensors && tensors.tensors[index + 1].first_block == piece) ++index;
    const AdamTensor& tensor = tensors.tensors[index];
    const AdamRounding<kOp> rounding{tensors.settings,
                                     tensors.settings.streams_from + tensors.streams[index],
                                     now.update, now.occasion};
    const int first = (piece - tensor.first_block) * kUpdateBlockElements;
    const int own = first + kAdamWidth * static_cast<int>(threadIdx.x);
    if constexpr (!kAny) {
      if (own + kAdamWidth <= tensor.elements && !now.skipped) {
        UpdateAdamPack<kOp, Storage>(now, tensor, rounding, own);
        continue;
      }
    }
    // Elements of q8 that share a scale belong to neighbouring threads.
#pragma unroll 1
    for (int pass = 0; pass < kUpdatePasses; ++pass) {
      const int i = kAny ? first + 4 * (pass * kUpdateThreads + static_cast<int>(threadIdx.x))
                         : own + 4 * pass;
      NextAdamNumbers<kOp, Storage>(now, tensor, rounding, i, max(0, min(4, tensor.elements - i)));
    }
  }
}

template <AdamOp kOp>
AdamSettings AdamSettingsOf(const KernelCall& call) {
  constexpr AdamInputs kInputs = kAdamPorts<kOp>.inputs;
  constexpr bool kGathers = kOp == AdamOp::kGather;
  const AdamSpec spec = AdamSpecOf(call.attributes, kInputs);
  AdamSettings settings;
  if constexpr (kGathers) {
    settings.seen = call.In<int32_t>(kInputs.seen);
  } else {
    settings.learning_rate = call.In<float>(kInputs.rate);
  }
  settings.update = call.In<int32_t>(kInputs.update);
  if (call.inputs.size() > kInputs.factor) settings.factor = call.In<float>(kInputs.factor);
  settings.beta1 = spec.beta1;
  settings.beta2 = spec.beta2;
  settings.epsilon = spec.epsilon;
  settings.weight_decay = spec.weight_decay;
  settings.aligned = true;
  for (size_t i = 0; i < kAdamArraysIn<kOp>; ++i) {
    settings.in_types[i] = call.inputs[i].dtype;
    settings.aligned &= AllAligned16(call.inputs[i].data);
  }
  for (size_t i = 0; i < kAdamArraysOut<kOp>; ++i) {
    settings.out_types[i] = call.outputs[i].dtype;
    settings.aligned &= AllAligned16(call.outputs[i].data);
  }
  if (RoundsAtRandom(call.attributes)) {
    const RoundingDraw draw = DrawOf(call.attributes);
    settings.stochastic = true;
    settings.key = draw.source.key();
    settings.streams_from = draw.tensor & ~0xFFFFU;
  }
  return settings;
}

// Elements [begin, end) of the arrays of a call.
template <AdamOp kOp>
AdamTensor AdamPieceOf(const KernelCall& call, int64_t begin, int64_t end) {
  const auto at = [&](const TensorView& view) {
    return static_cast<std::byte*>(view.data) +
           StorageBytes(view.dtype, static_cast<size_t>(begin));
  };
  AdamTensor tensor;
  for (size_t i = 0; i < kAdamArraysIn<kOp>; ++i) tensor.in[i] = at(call.inputs[i]);
  for (size_t i = 0; i < kAdamArraysOut<kOp>; ++i) tensor.out[i] = at(call.outputs[i]);
  tensor.elements = static_cast<int>(end - begin);
  return tensor;
}

// Calls body with a value of the type that a kernel for these settings is made for.
template <AdamOp kOp, class Body>
void WithAdamStorage(const AdamSettings& settings, const Body& body) {
  std::array<DType, kAdamArraysIn<kOp> + kAdamArraysOut<kOp>> types{};
  std::copy_n(settings.out_types, kAdamArraysOut<kOp>,
              std::copy_n(settings.in_types, kAdamArraysIn<kOp>, types.begin()));
  const bool has_q8 = std::find(types.begin(), types.end(), DType::kQ8) != types.end();
  if (has_q8 || !settings.aligned) return body(AnyNumber{});
  WithCommonStorage(types, body);
}

// Collects tensors with equal settings, and launches whenever the list is full.
template <AdamOp kOp>
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
      tensors_.Add(AdamPieceOf<kOp>(call, begin, std::min(elements, begin + kMostElements)),
                   static_cast<uint16_t>(call.attributes.Int("stream") & 0xFFFF));
    }
  }
  void Launch() {
    if (tensors_.num_blocks == 0) return;
    const int pieces_of_block = (tensors_.num_blocks - 1) / kMostAdamBlocks + 1;
    const int blocks = (tensors_.num_blocks - 1) / pieces_of_block + 1;
    WithAdamStorage<kOp>(tensors_.settings, [&](auto storage) {
      AdamKernel<kOp, decltype(storage)>
          <<<static_cast<unsigned>(blocks), kUpdateThreads, 0, stream_>>>(tensors_,
                                                                          pieces_of_block);
    });
    THIMBLE_CUDA_LAUNCHED();
    tensors_.Clear();
  }

 private:
  cudaStream_t stream_;
  AdamTensors tensors_;
};

// One launch for all calls with equal settings. Their order does not matter: no call accesses
// memory that another writes.
template <AdamOp kOp>
void RunAdam(std::span<const KernelCall> calls) {
  for (size_t first = 0; first < calls.size(); ++first) {
    const AdamSettings settings = AdamSettingsOf<kOp>(calls[first]);
    const auto is_alike = [&](const KernelCall& call) {
      return AdamSettingsOf<kOp>(call) == settings;
    };
    const auto before = calls.first(first);
    if (std::any_of(before.begin(), before.end(), is_alike)) continue;
    AdamLauncher<kOp> launcher(calls[first].stream, settings);
    for (const KernelCall& call : calls.subspan(first)) {
      if (is_alike(call)) launcher.Add(call);
    }
    launcher.Launch();
  }
}

}  // namespace

void AdamUpdateCuda::Run(const KernelCall& call) { RunAdam<AdamOp::kUpdate>({&call, 1}); }
void AdamUpdateCuda::RunGroup(std::span<const KernelCall> calls) {
  RunAdam<AdamOp::kUpdate>(calls);
}
void AdamGatherCuda::Run(const KernelCall& call) { RunAdam<AdamOp::kGather>({&call, 1}); }
void AdamGatherCuda::RunGroup(std::span<const KernelCall> calls) {
  RunAdam<AdamOp::kGather>(calls);
}
void AdamApplyCuda::Run(const KernelCall& call) { RunAdam<AdamOp::kApply>({&call, 1}); }
void AdamApplyCuda::RunGroup(std::span<const KernelCall> calls) { RunAdam<AdamOp::kApply>(calls); }

}  // namespace thimble
