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
  bool aligned = false;  // whether all arrays begin at multiples of 16 bytes
  bool stochastic = false;
  friend bool operator==(const AdamSettings&, const AdamSettings&) = default;
};

struct AdamTensor {
  const void* in[kAdamInputs] = {};
  void* out[kAdamOutputs] = {};
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

// AdamFactors as floats.
struct AdamNow {
  float beta1, beta2, new_share1, new_share2;
  float rate, root_scale, epsilon, decay;
  float bound_slope, bound_offset;
  float gradient_factor;
  uint32_t update;
};

// Called by all threads of a block. Powers and roots in doubles are slow: one thread each.
__device__ void SetNow(const AdamSettings& settings, AdamNow& now) {
  const auto factors = [&] {  // each thread computes only what it uses
    return AdamFactors({settings.beta1, settings.beta2, settings.epsilon, settings.weight_decay},
                       *settings.learning_rate, *settings.update);
  };
  const auto narrow = [](double factor) { return static_cast<float>(factor); };
  if (threadIdx.x == 0) now.rate = narrow(factors().rate);
  if (threadIdx.x == kWarpLanes) now.root_scale = narrow(factors().root_scale);
  if (threadIdx.x == 2 * kWarpLanes) {
    const AdamFactors all = factors();
    now.beta1 = narrow(all.beta1);
    now.beta2 = narrow(all.beta2);
    now.new_share1 = narrow(all.new_share1);
    now.new_share2 = narrow(all.new_share2);
    now.epsilon = narrow(all.epsilon);
    now.decay = narrow(all.decay);
    now.bound_slope = narrow(all.bound_slope);
    now.bound_offset = narrow(all.bound_offset);
    now.gradient_factor = settings.factor == nullptr ? 1.0F : *settings.factor;
    now.update = static_cast<uint32_t>(*settings.update);
  }
  __syncthreads();
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

// Four neighbouring elements of a tensor, the first of which is a multiple of 4, and what is stored
// of their next numbers.
struct AdamFour {
  FourNumbers in[kAdamInputs];
  FourNumbers out[kAdamOutputs];

  __device__ void Update(const AdamNow& now) {
    out[0] = in[0];
    out[1] = in[2];
    out[2] = in[3];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      AdamElement(now, in[1].numbers[k], out[0].numbers[k], out[1].numbers[k], out[2].numbers[k]);
    }
  }
};

// Random words of four elements: the first two outputs share theirs, the third has its own.
using AdamWords = std::array<PhiloxWords, 2>;

// How a tensor's numbers are rounded.
struct AdamRounding {
  const AdamSettings& settings;
  uint32_t stream, update;

  // Of the four elements from `first` on; nothing if they are not rounded at random.
  __device__ AdamWords WordsOf(int first) const {
    if (!settings.stochastic) return {};
    const RoundingDraw draw{.tensor = stream, .update = update};
    const uint32_t place = settings.first_draw + static_cast<uint32_t>(first) / 4;
    return Philox4x32<2>(settings.key,
                         {draw.ForOutput(0).Counter(place), draw.ForOutput(2).Counter(place)});
  }
  __device__ FourRounding Of(const AdamWords& words, int output) const {
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
__device__ void UpdateAdamNumbers(const AdamNow& now, const AdamTensor& tensor,
                                  const AdamRounding& rounding, int i, int count) {
  const AdamSettings& settings = rounding.settings;
  AdamFour four;
#pragma unroll
  for (int input = 0; input < kAdamInputs; ++input) {
    four.in[input] =
        LoadFourNumbers(AdamTypeOf<Storage>(settings.in_types[input]), tensor.in[input], i, count);
  }
  four.Update(now);
  const AdamWords words = rounding.WordsOf(i);
#pragma unroll
  for (int output = 0; output < kAdamOutputs; ++output) {
    StoreFourNumbers(AdamTypeOf<Storage>(settings.out_types[output]), four.out[output],
                     rounding.Of(words, output), output, tensor.out[output], i, count);
  }
}
template <class Storage>
__device__ void NextAdamNumbers(const AdamNow& now, const AdamTensor& tensor,
                                const AdamRounding& rounding, int i, int count) {
  if (now.gradient_factor == 0) {  // the update is skipped
    CopyAdamNumbers<Storage>(rounding.settings, tensor, i, count);
  } else {
    UpdateAdamNumbers<Storage>(now, tensor, rounding, i, count);
  }
}

// Elements of a thread that are loaded at once, 16 bytes of each array if they have 16 bits.
constexpr int kAdamWidth = 8;
static_assert(kAdamWidth * kUpdateThreads == kUpdateBlockElements);

// All arrays have one type and begin at multiples of 16 bytes; all kAdamWidth elements exist.
template <class Storage>
__device__ void UpdateAdamPack(const AdamNow& now, const AdamTensor& tensor,
                               const AdamRounding& rounding, int first) {
  Pack<Storage, kAdamWidth> in[kAdamInputs];
#pragma unroll
  for (int input = 0; input < kAdamInputs; ++input) {
    in[input] = LoadPack<kAdamWidth>(static_cast<const Storage*>(tensor.in[input]) + first);
  }
  float out[kAdamOutputs][kAdamWidth];
#pragma unroll
  for (int i = 0; i < kAdamWidth; i += 4) {
    AdamFour four;
#pragma unroll
    for (int input = 0; input < kAdamInputs; ++input) {
#pragma unroll
      for (int k = 0; k < 4; ++k) four.in[input].numbers[k] = in[input][i + k];
    }
    four.Update(now);
    const AdamWords words = rounding.WordsOf(first + i);
#pragma unroll
    for (int output = 0; output < kAdamOutputs; ++output) {
      const FourNumbers rounded =
          RoundFourNumbers(DTypeOf<Storage>(), four.out[output], rounding.Of(words, output),
                           RoundingDraw::ShiftOf(output));
#pragma unroll
      for (int k = 0; k < 4; ++k) out[output][i + k] = rounded.numbers[k];
    }
  }
#pragma unroll
  for (int output = 0; output < kAdamOutputs; ++output) {
    StorePack(out[output], static_cast<Storage*>(tensor.out[output]) + first);
  }
}

// A block works on neighbouring pieces. Storage: of all arrays, which then begin at multiples of 16
// bytes; or AnyNumber.
template <class Storage>
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
    const AdamRounding rounding{tensors.settings,
                                tensors.settings.streams_from + tensors.streams[index], now.update};
    const int first = (piece - tensor.first_block) * kUpdateBlockElements;
    const int own = first + kAdamWidth * static_cast<int>(threadIdx.x);
    if constexpr (!kAny) {
      if (own + kAdamWidth <= tensor.elements && now.gradient_factor != 0) {
        UpdateAdamPack<Storage>(now, tensor, rounding, own);
        continue;
      }
    }
    // Elements of q8 that share a scale belong to neighbouring threads.
#pragma unroll 1
    for (int pass = 0; pass < kUpdatePasses; ++pass) {
      const int i = kAny ? first + 4 * (pass * kUpdateThreads + static_cast<int>(threadIdx.x))
                         : own + 4 * pass;
      NextAdamNumbers<Storage>(now, tensor, rounding, i, max(0, min(4, tensor.elements - i)));
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
  settings.aligned = true;
  for (size_t i = 0; i < kAdamInputs; ++i) {
    settings.in_types[i] = call.inputs[i].dtype;
    settings.aligned &= AllAligned16(call.inputs[i].data);
  }
  for (size_t i = 0; i < kAdamOutputs; ++i) {
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

// Calls body with a value of the type that a kernel for these settings is made for.
template <class Body>
void WithAdamStorage(const AdamSettings& settings, const Body& body) {
  std::array<DType, kAdamInputs + kAdamOutputs> types{};
  std::copy_n(settings.out_types, kAdamOutputs,
              std::copy_n(settings.in_types, kAdamInputs, types.begin()));
  const bool has_q8 = std::find(types.begin(), types.end(), DType::kQ8) != types.end();
  if (has_q8 || !settings.aligned) return body(AnyNumber{});
  WithCommonStorage(types, body);
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
    const int pieces_of_block = (tensors_.num_blocks - 1) / kMostAdamBlocks + 1;
    const int blocks = (tensors_.num_blocks - 1) / pieces_of_block + 1;
    WithAdamStorage(tensors_.settings, [&](auto storage) {
      AdamKernel<decltype(storage)><<<static_cast<unsigned>(blocks), kUpdateThreads, 0, stream_>>>(
          tensors_, pieces_of_block);
    });
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
