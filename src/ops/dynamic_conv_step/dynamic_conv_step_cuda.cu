// One kernel computes y, a second one stores the next history: hypotheses read each other's slots,
// of which the next history overwrites one.
#include <cuda_runtime.h>

#include <array>
#include <cstdint>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/elements.cuh"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/device/cuda/warp.cuh"
#include "thimble/ops/dynamic_conv_step/dynamic_conv_step.h"
#include "thimble/ops/dynamic_conv_step/sizes.h"

namespace thimble {
namespace {

// StepSizes as GPU code takes them.
struct StepPlaces {
  int hypotheses, channels, heads, slots, ancestors, head_channels;
  int64_t slot_size;
  int64_t rows;  // one for each hypothesis and head

  explicit StepPlaces(const StepSizes& sizes)
      : hypotheses(static_cast<int>(sizes.hypotheses)),
        channels(static_cast<int>(sizes.channels)),
        heads(static_cast<int>(sizes.heads)),
        slots(static_cast<int>(sizes.slots)),
        ancestors(static_cast<int>(sizes.ancestors)),
        head_channels(static_cast<int>(sizes.head_channels())),
        slot_size(sizes.SlotSize()),
        rows(sizes.sentences * sizes.hypotheses * sizes.heads) {}
};

template <class Storage>
struct StepArrays {
  InNumbers<Storage> x;         // (B, N, C)
  InNumbers<AnyNumber> logits;  // (B, N, H * K)
  InNumbers<Storage> history;   // (K - 1, B, N, C)
  const int32_t* ancestors;     // (B, N, P)
  const int32_t* step;          // (1)
  OutNumbers<Storage> y;        // (B, N, C)
};

__device__ int64_t PositionOf(const int32_t* step) { return max(0, *step); }

// A warp for each hypothesis and head.
template <class Storage>
__global__ void __launch_bounds__(kWarpLanes)
    ConvStepKernel(StepPlaces sizes, StepArrays<Storage> arrays) {
  WaitForKernelsBefore();
  const int64_t row = blockIdx.x;
  const int64_t hypothesis = row / sizes.heads;  // of all sentences
  const int64_t sentence = hypothesis / sizes.hypotheses;
  const int taps = sizes.slots + 1;
  const auto logits = arrays.logits + row * taps;
  const int lane = static_cast<int>(threadIdx.x);
  float largest = -INFINITY;
  for (int k = lane; k < taps; k += kWarpLanes) largest = fmaxf(largest, LoadNumber(logits + k));
  largest = WarpMax(largest);
  float sum = 0;
  for (int k = lane; k < taps; k += kWarpLanes) sum += expf(LoadNumber(logits + k) - largest);
  sum = WarpSum(sum);
  const auto weight = [&](int k) { return expf(LoadNumber(logits + k) - largest) / sum; };
  const int64_t position = PositionOf(arrays.step);
  const auto earlier = static_cast<int>(min(position, int64_t{sizes.slots}));
  const int64_t in_head = row % sizes.heads * sizes.head_channels;
  const int32_t* ancestors = arrays.ancestors + hypothesis * sizes.ancestors;
  for (int c = lane; c < sizes.head_channels; c += kWarpLanes) {
    float y = 0;
    for (int back = earlier; back > 0; --back) {
      const int32_t ancestor = ancestors[back - 1];
      if (ancestor < 0 || ancestor >= sizes.hypotheses) {
        y = nanf("");
        break;
      }
      const int64_t from = (sentence * sizes.hypotheses + ancestor) * sizes.channels;
      const int64_t slot = (position - back) % sizes.slots * sizes.slot_size;
      y = fmaf(weight(sizes.slots - back), LoadNumber(arrays.history + (slot + from + in_head + c)),
               y);
    }
    const int64_t at = hypothesis * sizes.channels + in_head + c;
    if (y == y) y = fmaf(weight(sizes.slots), LoadNumber(arrays.x + at), y);
    StoreNumber(y, arrays.y + at);
  }
}

struct CopyHistory {
  InNumbers<AnyNumber> history;
  OutNumbers<AnyNumber> next;

  __device__ void operator()(int64_t i) const { StoreNumber(LoadNumber(history + i), next + i); }
};

// Stores x in the slot of this position.
struct StoreSlot {
  int64_t slot_size;
  int slots;
  const int32_t* step;
  InNumbers<AnyNumber> x;
  OutNumbers<AnyNumber> next;

  __device__ void operator()(int64_t i) const {
    StoreNumber(LoadNumber(x + i), next + (PositionOf(step) % slots * slot_size + i));
  }
};

}  // namespace

void DynamicConvStepCuda::Run(const KernelCall& call) {
  if (call.out_shape(0).elements() == 0) return;
  const StepPlaces sizes(StepSizes(call.in_shape(2), call.in_shape(3), call.attributes));
  const std::array types{call.inputs[0].dtype, call.inputs[2].dtype, call.outputs[0].dtype};
  WithCommonStorage(types, [&](auto type) {
    using Storage = decltype(type);
    ConvStepKernel<Storage><<<static_cast<unsigned>(sizes.rows), kWarpLanes, 0, call.stream>>>(
        sizes, StepArrays<Storage>{As<Storage>(ConstNumbersOf(call.inputs[0])),
                                   ConstNumbersOf(call.inputs[1]),
                                   As<Storage>(ConstNumbersOf(call.inputs[2])), call.In<int32_t>(3),
                                   call.In<int32_t>(4), As<Storage>(NumbersOf(call.outputs[0]))});
    THIMBLE_CUDA_LAUNCHED();
  });
  const ConstNumbers history = ConstNumbersOf(call.inputs[2]);
  const Numbers next = NumbersOf(call.outputs[1]);
  if (next.data != history.data) {
    LaunchElements(call.stream, call.out_shape(1).elements(), CopyHistory{history, next});
  }
  LaunchElements(call.stream, sizes.slot_size,
                 StoreSlot{sizes.slot_size, sizes.slots, call.In<int32_t>(4),
                           ConstNumbersOf(call.inputs[0]), next});
}

}  // namespace thimble
