#include <algorithm>
#include <limits>

#include "thimble/device/cpu/numbers.h"
#include "thimble/device/cpu/softmax_rows.h"
#include "thimble/device/cpu/thread_pool.h"
#include "thimble/ops/dynamic_conv_step/dynamic_conv_step.h"
#include "thimble/ops/dynamic_conv_step/sizes.h"

// Highway compiles the part between BEFORE_NAMESPACE and AFTER_NAMESPACE once per SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/ops/dynamic_conv_step/dynamic_conv_step_cpu.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/device/cpu/numbers-inl.h"
#include "thimble/device/cpu/simd_loops-inl.h"

#ifndef THIMBLE_OPS_DYNAMIC_CONV_STEP_CPU_ONCE_
#define THIMBLE_OPS_DYNAMIC_CONV_STEP_CPU_ONCE_
namespace thimble {
namespace {

// y (channels) = the sum over the earlier positions, oldest first, of a weight times the row of the
// ancestor there, and at last of the newest weight times x: one chain of multiply-adds.
struct TapSum {
  ConstNumbers history;      // from the head's first channel in slot 0 of the sentence on
  size_t slot_stride;        // numbers from one slot to the next
  size_t row_stride;         // and from one hypothesis to the next
  size_t slots;              // of the history
  size_t oldest_slot;        // the slot of the oldest position
  size_t earlier;            // positions
  const int32_t* ancestors;  // (earlier), newest first; all in range
  const float* weights;      // (earlier + 1), oldest first
  const float* x;            // (channels)
  size_t channels;
  float* y;  // (channels)
};

}  // namespace
}  // namespace thimble
#endif

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Vectors whose sums stay in registers: enough chains to hide the latency of a multiply-add. (One
// on the scalar target: see band_products.cc.)
constexpr size_t kTapVectors = HWY_TARGET == HWY_SCALAR ? 1 : 4;

// kVectors vectors of channels from `channel` on.
template <size_t kVectors, class Tag, class Stored>
HWY_INLINE void SumTapsOf(Tag tag, const TapSum& p, const Stored* history, size_t channel) {
  using Vector = hn::Vec<Tag>;
  const size_t lanes = hn::Lanes(tag);
  // The unrolling is required: only then are the sums kept in registers.
  Vector sums[kVectors];
  HWY_UNROLL(4)
  for (size_t v = 0; v < kVectors; ++v) sums[v] = hn::Zero(tag);
  const auto add = [&](float number, const auto* row) HWY_ATTR {
    const Vector weight = hn::Set(tag, number);
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) {
      sums[v] = hn::MulAdd(weight, LoadNumbers(tag, row + channel + v * lanes), sums[v]);
    }
  };
  size_t slot = p.oldest_slot;
  for (size_t i = 0; i < p.earlier; ++i) {
    const auto ancestor = static_cast<size_t>(p.ancestors[p.earlier - 1 - i]);
    add(p.weights[i], history + slot * p.slot_stride + ancestor * p.row_stride);
    slot = slot + 1 == p.slots ? 0 : slot + 1;
  }
  add(p.weights[p.earlier], p.x);
  HWY_UNROLL(4)
  for (size_t v = 0; v < kVectors; ++v) hn::StoreU(sums[v], tag, p.y + channel + v * lanes);
}

void SumTaps(const TapSum& p) {
  VisitNumbers(p.history, [&](const auto* history) HWY_ATTR {
    const WideTag wide;
    const size_t lanes = hn::Lanes(wide);
    size_t channel = 0;
    for (; channel + kTapVectors * lanes <= p.channels; channel += kTapVectors * lanes) {
      SumTapsOf<kTapVectors>(wide, p, history, channel);
    }
    for (; channel + lanes <= p.channels; channel += lanes) {
      SumTapsOf<1>(wide, p, history, channel);
    }
    for (; channel < p.channels; ++channel) SumTapsOf<1>(OneLaneTag(), p, history, channel);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(SumTaps);

namespace {

// A thread's scratch: the weights of a head of a hypothesis, and its channels of x and y where
// those are not floats. Each thread starts with a task of its own, so no more threads than tasks
// need scratch.
struct StepScratch {
  StepScratch(const StepSizes& sizes, DType x, DType y)
      : tasks(static_cast<size_t>(sizes.sentences * sizes.heads)),
        weight_floats(PaddedSoftmaxWidth(static_cast<size_t>(sizes.taps()))),
        x_floats(x == DType::kF32 ? 0 : RowFloats(sizes)),
        y_floats(y == DType::kF32 ? 0 : RowFloats(sizes)) {}

  size_t Floats() const { return weight_floats + x_floats + y_floats; }
  size_t Bytes(size_t threads) const { return std::min(tasks, threads) * Floats() * sizeof(float); }

  size_t tasks;
  size_t weight_floats;
  size_t x_floats;
  size_t y_floats;

 private:
  // Threads share no cache line.
  static size_t RowFloats(const StepSizes& sizes) {
    return PaddedSoftmaxWidth(static_cast<size_t>(sizes.head_channels()));
  }
};

// One head of one sentence, at a position.
struct StepTask {
  const KernelCall& call;
  const StepSizes& sizes;
  const StepScratch& arrays;
  int64_t position;
  int64_t b;
  int64_t h;
  float* scratch;

  // Hypotheses share slots, so all are computed before x is stored.
  void Run() const {
    for (int64_t n = 0; n < sizes.hypotheses; ++n) ComputeHypothesis(n);
    const Numbers slot =
        NumbersOf(call.outputs[1]) + static_cast<size_t>(sizes.SlotOf(position) * sizes.SlotSize());
    for (int64_t n = 0; n < sizes.hypotheses; ++n) {
      EncodeNumbers(ReadX(n), channels(), slot + FirstChannel(n));
    }
  }

 private:
  size_t channels() const { return static_cast<size_t>(sizes.head_channels()); }
  size_t FirstChannel(int64_t n) const { return static_cast<size_t>(sizes.Channel(b, n, h)); }
  const float* ReadX(int64_t n) const {
    return ReadNumbers(ConstNumbersOf(call.inputs[0]) + FirstChannel(n), channels(),
                       scratch + arrays.weight_floats);
  }
  bool AreHypotheses(const int32_t* ancestors, size_t count) const {
    return std::all_of(ancestors, ancestors + count,
                       [&](int32_t n) { return n >= 0 && n < sizes.hypotheses; });
  }
  // The softmax of the logits of a hypothesis.
  const float* Weights(int64_t n) const {
    const auto taps = static_cast<size_t>(sizes.taps());
    DecodeNumbers(ConstNumbersOf(call.inputs[1]) + static_cast<size_t>(sizes.Logit(b, n, h)), taps,
                  scratch);
    SoftmaxInPlace({1, taps, arrays.weight_floats}, 1, scratch);
    return scratch;
  }

  void ComputeHypothesis(int64_t n) const {
    const Numbers to = NumbersOf(call.outputs[0]) + FirstChannel(n);
    float* y = RoomForNumbers(to, scratch + arrays.weight_floats + arrays.x_floats);
    const int64_t earlier = sizes.Earlier(position);
    const int32_t* ancestors = call.In<int32_t>(3) + sizes.Ancestor(b, n);
    if (AreHypotheses(ancestors, static_cast<size_t>(earlier))) {
      HWY_DYNAMIC_DISPATCH(SumTaps)
      ({.history = ConstNumbersOf(call.inputs[2]) + FirstChannel(0),
        .slot_stride = static_cast<size_t>(sizes.SlotSize()),
        .row_stride = static_cast<size_t>(sizes.channels),
        .slots = static_cast<size_t>(sizes.slots),
        .oldest_slot = static_cast<size_t>(sizes.SlotOf(position - earlier)),
        .earlier = static_cast<size_t>(earlier),
        .ancestors = ancestors,
        .weights = Weights(n) + (sizes.slots - earlier),
        .x = ReadX(n),
        .channels = channels(),
        .y = y});
    } else {
      std::fill_n(y, channels(), std::numeric_limits<float>::quiet_NaN());
    }
    WriteNumbers(y, channels(), to);
  }
};

}  // namespace

size_t DynamicConvStepCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  const StepSizes sizes(call.inputs[2], call.inputs[3], call.attributes);
  return StepScratch(sizes, call.input_type(0), call.output_type(0))
      .Bytes(static_cast<size_t>(limits.threads));
}

void DynamicConvStepCpu::Run(const KernelCall& call) {
  const StepSizes sizes(call.in_shape(2), call.in_shape(3), call.attributes);
  const StepScratch arrays(sizes, call.inputs[0].dtype, call.outputs[0].dtype);
  auto* scratch = reinterpret_cast<float*>(call.scratch.data());
  // Ancestors out of range leave it unused.
  if (!call.scratch.empty()) scratch[call.scratch.size() / sizeof(float) - 1] = 0;
  CopyNumbers(call.pool, call.inputs[2], call.outputs[1]);
  const int64_t position = StepSizes::Position(call.In<int32_t>(4)[0]);
  call.pool.Run(arrays.tasks, [&](size_t task, size_t thread) {
    StepTask{.call = call,
             .sizes = sizes,
             .arrays = arrays,
             .position = position,
             .b = static_cast<int64_t>(task) / sizes.heads,
             .h = static_cast<int64_t>(task) % sizes.heads,
             .scratch = scratch + thread * arrays.Floats()}
        .Run();
  });
}

}  // namespace thimble
#endif  // HWY_ONCE
